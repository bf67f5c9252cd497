"""Weights of other implementations: `load_legacy` gives a module of ours with the same outputs."""

from collections.abc import Mapping

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn

from lff import arguments
from lff.encodings.encoding import Encoding
from lff.encodings.fourier import FourierFeatures, LearnableFourier

#: What an implementation calls W_r; the two with an MLP call its layers alike.
KINDS = {
    "learnable-fourier-positional-encoding": "Wr.weight",
    "JHLew": "Wr",
    "LightGlue": "Wr.weight",
}
_DENSE = {
    f"mlp.{theirs}.{part}": f"encoder.{ours}.{part}"
    for theirs, ours in ((0, "dense_1"), (2, "dense_2"))
    for part in ("weight", "bias")
}


def load_legacy(state_dict: Mapping[str, Tensor], kind: str, *, groups: int = 1) -> "Encoding | RotaryFeatures":
    """An encoding with the weights, and so the outputs, of another implementation's.

    Coordinates stay on one axis here: where theirs took [..., groups, coordinates], ours takes [..., groups * coordinates].

    Args:
        state_dict: of their module, as `torch.load(path, weights_only=True)` or safetensors give it.
        kind: "learnable-fourier-positional-encoding" (the package), "JHLew" (Learnable-Fourier-Features) or "LightGlue" (its
            positional encoder, which has no MLP and whose output is [2, ..., 1, positions, depth], for rotating).
        groups: theirs; it is not in the weights.
    """
    key = KINDS[arguments.choice("kind", kind, KINDS)]
    expected = {key} if kind == "LightGlue" else {key, *_DENSE}
    if set(state_dict) != expected:
        raise ValueError(f"state_dict must have the keys {sorted(expected)} for kind {kind!r}, got {sorted(state_dict)}")
    w_r = state_dict[key]
    freqs, coords = w_r.shape
    if kind == "LightGlue":
        rotary = RotaryFeatures(coords, 2 * freqs)
        rotary.features.load_state_dict({"w_r": w_r})
        return rotary
    hidden, depth = state_dict["mlp.0.weight"].shape[0], state_dict["mlp.2.weight"].shape[0]
    arguments.whole("groups", groups)
    encoding = LearnableFourier(coords * groups, depth * groups, features=2 * freqs, hidden=hidden, groups=groups)
    weights = {ours: state_dict[theirs] for theirs, ours in _DENSE.items()}
    encoding.load_state_dict({"encoder.features.w_r": w_r, **weights})
    return encoding


class RotaryFeatures(nn.Module):
    """LightGlue's form of Eq. 2, for rotating queries and keys: the cosines and the sines, each frequency twice in a row.

    Args:
        coords: coordinates of a position.
        depth: of a head, even.
    """

    def __init__(self, coords: int, depth: int) -> None:
        super().__init__()
        self.features = FourierFeatures(coords, depth)

    def forward(self, positions: Num[Tensor, "*batch positions coords"]) -> Float[Tensor, "2 *batch 1 positions depth"]:
        cos, sin = self.features(positions).mul(self.features.depth**0.5).chunk(2, dim=-1)
        return torch.stack([cos, sin]).unsqueeze(-3).repeat_interleave(2, dim=-1)
