"""One token at a time: what a Reformer remembers of the tokens before, and how the next one is drawn.

As transformers' cached decoding, which hashes a new token, finds its place among all before it, and attends to its chunk and the
one before that. Its own is right for one sequence: in a batch it reads the states of the first for all. Here keys, values and
the sorted order of every sequence are kept, and a token costs no sort.
"""

from typing import Any

import torch
from einops import rearrange, repeat
from jaxtyping import Float, Int
from torch import Tensor

from lff.experiments.tasks.generation.lsh import ITSELF, attend, hashed, heads_of, joined, normalised, output, rotations, sort


class Memory:
    """What one layer remembers.

    Args:
        attention: the layer's ReformerAttention.
        batch: sequences.
        length: tokens at most.
        like: a tensor on the device and of the dtype of the states.
    """

    def __init__(self, attention: Any, batch: int, length: int, like: Tensor) -> None:
        self.attention, self.lsh, self.count = attention, attention.self_attention, 0
        self.directions = rotations(self.lsh, like)
        heads, depth, rounds = self.lsh.num_attention_heads, self.lsh.attention_head_size, self.lsh.num_hashes
        self.keys, self.values = (torch.zeros(batch, heads, length, depth, device=like.device, dtype=like.dtype) for _ in "kv")
        self.buckets, self.order = (torch.zeros(batch, heads, rounds, length, device=like.device, dtype=torch.long) for _ in "bo")

    def read(self, states: Float[Tensor, "b n width"]) -> Float[Tensor, "b n width"]:
        """The attention's output for the first tokens, whole chunks of them."""
        qk, v = heads_of(self.lsh, states)
        buckets, n = hashed(qk, self.directions), states.shape[1]
        order, undo = sort(buckets)
        self._remember(qk, v, buckets)
        self.order[..., :n] = order
        return output(self.attention, attend(qk, v, order, undo, self.lsh.chunk_length))

    def step(self, state: Float[Tensor, "b 1 width"]) -> Float[Tensor, "b 1 width"]:
        """The attention's output for the next token."""
        qk, v = heads_of(self.lsh, state)
        bucket, t = hashed(qk, self.directions), self.count
        self._remember(qk, v, bucket)
        place = self._insert(bucket)
        if t < self.lsh.chunk_length:  # too few for chunks: to all of them, as in one round
            seen = repeat(torch.arange(t + 1, device=qk.device), "k -> b h 1 k", b=len(qk), h=qk.shape[1])
        else:
            size = self.lsh.chunk_length
            start = (place // size - 1) * size
            seen = self.order.gather(-1, (start + torch.arange(2 * size, device=qk.device)) % (t + 1))
        return output(self.attention, self._attend(qk, seen))

    def _remember(self, qk: Tensor, v: Tensor, buckets: Tensor) -> None:
        new = slice(self.count, self.count + qk.shape[2])
        self.keys[:, :, new], self.values[:, :, new], self.buckets[..., new] = normalised(qk), v, buckets
        self.count = new.stop

    def _insert(self, bucket: Int[Tensor, "b h r 1"]) -> Int[Tensor, "b h r 1"]:
        """Puts the last token behind all of its bucket and of those before, and gives its place."""
        t = self.count - 1
        place = (self.buckets[..., :t] <= bucket).sum(-1, keepdim=True)
        at = torch.arange(t + 1, device=bucket.device)
        before = self.order[..., : t + 1]
        moved = torch.where(at == place, t, torch.where(at < place, before, before.roll(1, dims=-1)))
        self.order[..., : t + 1] = moved
        return place

    def _attend(self, q: Float[Tensor, "b h 1 d"], seen: Int[Tensor, "b h r k"]) -> Float[Tensor, "b h 1 d"]:
        at = rearrange(seen, "b h r k -> b h (r k) 1").expand(-1, -1, -1, q.shape[-1])
        keys, values = (rearrange(x.gather(2, at), "b h (r k) d -> b h r k d", r=seen.shape[2]) for x in (self.keys, self.values))
        dots = torch.einsum("bhqd,bhrkd->bhrqk", q, keys)
        dots = torch.where(rearrange(seen, "b h r k -> b h r 1 k") == self.count - 1, ITSELF, dots.float())
        total = dots.logsumexp(-1, keepdim=True)
        return joined(torch.einsum("bhrqk,bhrkd->bhrqd", torch.exp(dots - total).to(values.dtype), values), total)


class Decoder:
    """A Reformer that reads and predicts token by token.

    Args:
        host: a ReformerModelWithLMHead in evaluation mode, with hash seeds.
        batch: sequences.
        length: tokens at most.
    """

    def __init__(self, host: Any, batch: int, length: int) -> None:
        self.host, self.layers, self.count = host, host.reformer.encoder.layers, 0
        like = host.reformer.embeddings.word_embeddings.weight
        self.memories = [Memory(layer.attention, batch, length, like) for layer in self.layers]

    @torch.no_grad()
    def __call__(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b values"]:
        """Reads the next tokens and gives the logits of the one after: one at a time, but for whole chunks at the beginning."""
        size, n = self.memories[0].lsh.chunk_length, ids.shape[1]
        whole = n // size * size if self.count == 0 and n >= 2 * size else 0
        parts = [ids[:, :whole]] if whole else []
        return [self._pass(part) for part in [*parts, *(ids[:, i : i + 1] for i in range(whole, n))]][-1]

    def _pass(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b values"]:
        first = second = self.host.reformer.embeddings(input_ids=ids, start_idx_pos_encodings=self.count)
        self.count += ids.shape[1]
        for layer, memory in zip(self.layers, self.memories, strict=True):
            normed = layer.attention.layer_norm(second)
            first = first + (memory.step(normed) if ids.shape[1] == 1 else memory.read(normed))
            second = second + layer.feed_forward(first)
        last = torch.cat([first, second], dim=-1)[:, -1:]
        logits: Tensor = self.host.lm_head(self.host.reformer.encoder.layer_norm(last))
        return logits[:, 0]


def draw(
    logits: Float[Tensor, "b values"], generator: torch.Generator, *, temperature: float = 1.0, top_k: int = 0
) -> Int[Tensor, " b"]:
    """The next token.

    Args:
        logits: of every value.
        generator: the source of chance; the host resets torch's own when it hashes.
        temperature: divides the logits; 0 takes the likeliest.
        top_k: leaves out all but so many of the likeliest; 0 leaves out none.
    """
    if temperature == 0:
        return logits.argmax(-1)
    scaled = logits.float() / temperature
    if 0 < top_k < scaled.shape[-1]:
        least = scaled.topk(top_k, dim=-1).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, float("-inf"))
    return torch.multinomial(scaled.softmax(-1), 1, generator=generator)[:, 0]
