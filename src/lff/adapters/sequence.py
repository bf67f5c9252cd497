"""transformers' Reformer and BERT: models that number the tokens of a sequence."""

from collections.abc import Sequence
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers.models.bert.modeling_bert import BertEmbeddings
from transformers.models.reformer.modeling_reformer import ReformerEmbeddings

from lff import arguments
from lff.adapters.host import Changed, Options, Trained, check, settle
from lff.adapters.shared import remembered
from lff.encodings.encoding import Encoding


class SequencePositions(nn.Module):
    """Encodes token numbers, once for the batch where all sequences share them, and while the model evaluates once for all.

    Args:
        encoding: of one coordinate, or of a cell of `extent`.
        extent: what the sequence is a raster of, (64, 64, 3) for the pixels of an image; None for a plain sequence.
    """

    def __init__(self, encoding: Encoding, extent: Sequence[int] | None) -> None:
        super().__init__()
        self.encoding = encoding
        self.extent = None if extent is None else arguments.sizes("extent", extent)
        self.train(encoding.training)

    def positions(self, position_ids: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch coords"]:
        """The coordinates of each token."""
        if self.extent is None:
            return rearrange(position_ids, "... -> ... 1")
        return torch.stack(torch.unravel_index(position_ids, self.extent), dim=-1)

    def forward(self, position_ids: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length depth"]:
        # Both hosts expand one row of numbers to the batch: then every row is the same memory.
        shared = position_ids.stride(0) == 0
        numbers = position_ids[:1] if shared else position_ids

        def make() -> Tensor:
            made: Tensor = self.encoding(self.positions(numbers))
            return made

        encoded = remembered(self, make, numbers.numel(), numbers) if shared else make()
        return encoded.expand(position_ids.shape[0], -1, -1)


class _Embeddings(Changed):
    """A swapped host: its module of positions reads as ours."""

    position: SequencePositions

    @property
    def position_embeddings(self) -> SequencePositions:
        return self.position


class SwappedReformer(_Embeddings, ReformerEmbeddings):
    """Reformer's embeddings with an encoding."""


class SwappedBert(_Embeddings, BertEmbeddings):
    """BERT's embeddings with an encoding: sequences may be longer than the host's table was."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        past_key_values_length: int = 0,
        **kwargs: Any,
    ) -> Tensor:
        given = inputs_embeds if input_ids is None else input_ids
        assert given is not None
        batch, length = given.shape[:2]
        if position_ids is None:  # the host would cut both from buffers as long as its table
            numbers = torch.arange(past_key_values_length, past_key_values_length + length, device=given.device)
            position_ids = rearrange(numbers, "n -> 1 n").expand(batch, -1)
        if token_type_ids is None:
            token_type_ids = torch.zeros(batch, length, dtype=torch.long, device=given.device)
        out: Tensor = super().forward(
            input_ids=input_ids,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            past_key_values_length=past_key_values_length,
            **kwargs,
        )
        return out

    def undo(self, parent: nn.Module, name: str) -> None:
        self._buffers["token_type_ids"] = self.__dict__.pop("_types").to(self.position_ids.device)
        super().undo(parent, name)


def trained(model: nn.Module, name: str, options: Options) -> Trained:
    """The host's table at every number that it has a row for."""
    embeddings: Any = model.get_submodule(name)
    ids = torch.arange(_length(embeddings), device=next(embeddings.parameters()).device)
    host = embeddings.position_embeddings
    with torch.no_grad():
        was, _ = host.training, host.train()  # Reformer's axial tables return fewer rows when they evaluate
        table = host(rearrange(ids, "n -> 1 n"))[0]
        host.train(was)
    return Trained(SequencePositions(nn.Identity(), options.extent).positions(ids), table)  # type: ignore[arg-type]


def put(model: nn.Module, name: str, encoding: Encoding, options: Options) -> None:
    """Puts the encoding into the embeddings `name` of `model`."""
    embeddings: Any = model.get_submodule(name)
    words: Tensor = embeddings.word_embeddings.weight
    coords = 1 if options.extent is None else len(arguments.sizes("extent", options.extent))
    check(encoding, depth=words.shape[-1], coords=coords, host=type(embeddings).__name__)
    position = SequencePositions(settle(encoding, model, words), options.extent)
    kind = SwappedBert if isinstance(embeddings, BertEmbeddings) else SwappedReformer
    kind.change(embeddings, ["position_embeddings"])
    embeddings.position = position
    if kind is SwappedBert:  # transformers 4 cuts the types of all tokens from a buffer as long as the table was, if it is there
        embeddings.__dict__["_types"] = embeddings._buffers.pop("token_type_ids")


def _length(embeddings: Any) -> int:
    table = embeddings.position_embeddings
    return int(table.num_embeddings if isinstance(table, nn.Embedding) else embeddings.max_position_embeddings)
