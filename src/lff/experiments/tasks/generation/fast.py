"""transformers' Reformer made faster, with the same numbers for the same hash seed.

Its own code, as read: under autocast its backward pass computes in float32, since the layers are run again outside of autocast;
every layer is run a second time to save memory that may be there; logits and masks of the chunks pass through memory again and
again. What that costs is measured by benchmarks/reformer.py. Here a layer is ordinary differentiable code that `torch.compile`
fuses, its activations are kept or, where memory is short, recomputed in the dtype that they were computed in.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers.models.reformer.modeling_reformer import LSHSelfAttention, ReformerEncoder, ReformerEncoderOutput, ReformerLayer

from lff.experiments.tasks.generation.lsh import attend, hashed, heads_of, output, rotations, sort


class FastLayer(ReformerLayer):  # type: ignore[misc]  # the host's class
    """A layer that takes the hash's directions, which are drawn outside of what is compiled. Without them it is the host's."""

    def forward(
        self, prev_attn_output: Tensor, hidden_states: Tensor, *given: Any, directions: Any = None, **options: Any
    ) -> Any:
        if directions is None:
            return super().forward(prev_attn_output, hidden_states, *given, **options)
        lsh = self.attention.self_attention
        qk, v = heads_of(lsh, self.attention.layer_norm(hidden_states))
        order, undo = sort(hashed(qk, directions))
        first = prev_attn_output + output(self.attention, attend(qk, v, order, undo, lsh.chunk_length))
        return first, hidden_states + self.feed_forward(first)


class FastEncoder(ReformerEncoder):  # type: ignore[misc]
    """All layers. What is not training or evaluation of whole sequences (padding, a cache, attentions to show) is the host's."""

    recompute: bool

    def forward(self, hidden_states: Float[Tensor, "b n width"], **options: Any) -> Any:
        n, size = hidden_states.shape[1], self.layers[0].attention.self_attention.chunk_length
        asked = {name for name, value in options.items() if name != "orig_sequence_length" and value not in (None, False)}
        if asked or n <= size or n % size:
            return super().forward(hidden_states, **options)
        first, second = hidden_states.clone(), hidden_states  # apart, or the compiler would make the first layer's code anew
        for layer in self.layers:
            directions = rotations(layer.attention.self_attention, hidden_states)
            if self.recompute and torch.is_grad_enabled():
                first, second = checkpoint(
                    layer, first, second, directions=directions, use_reentrant=False, preserve_rng_state=False
                )
            else:
                first, second = layer(first, second, directions=directions)
        states = self.layer_norm(torch.cat([first, second], dim=-1))
        return ReformerEncoderOutput(states, [], [], None)


def speed_up(model: nn.Module, *, recompute: bool = False) -> nn.Module:
    """Changes the layers of a transformers Reformer in place and returns the model; its weights and their names stay.

    Args:
        model: contains a ReformerEncoder with LSH attention alone, one chunk before and none after, and no dropout.
        recompute: keep only what goes into a layer, and compute the rest again in the backward pass.
    """
    encoders = [module for module in model.modules() if isinstance(module, ReformerEncoder)]
    if len(encoders) != 1:
        raise ValueError(f"model must contain one ReformerEncoder, got {len(encoders)} in a {type(model).__name__}")
    encoder: Any = encoders[0]
    for layer in encoder.layers:
        _check(layer)
    encoder.__class__, encoder.recompute = FastEncoder, recompute
    for layer in encoder.layers:
        layer.__class__ = FastLayer
    return model


def _check(layer: Any) -> None:
    lsh = layer.attention.self_attention
    if not isinstance(lsh, LSHSelfAttention):
        raise ValueError(f"model must have LSH attention in all layers, got {type(lsh).__name__}")
    seen = {"is_decoder": lsh.is_decoder, "before": lsh.num_chunks_before, "after": lsh.num_chunks_after}
    if seen != {"is_decoder": True, "before": 1, "after": 0} or not isinstance(lsh.num_buckets, int):
        raise ValueError(
            "model must be a decoder with one chunk before, none after and a whole number of buckets, "
            f"got {seen} and {lsh.num_buckets} buckets"
        )
    if lsh.dropout or layer.attention.output.dropout or layer.feed_forward.dense.dropout:
        raise ValueError("model must have no dropout: the host draws it from the state that its hash seed sets")
