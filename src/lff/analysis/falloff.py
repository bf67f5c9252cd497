"""Similarity against distance and direction, and how round it is: a ball has a roundness of 1, a cross a large one."""

import math
from dataclasses import dataclass

import torch
from einops import rearrange
from jaxtyping import Float, Num
from torch import Tensor

from lff import arguments
from lff.analysis.similarity import similarity
from lff.encodings.embedding import Embed
from lff.encodings.encoding import Encoding
from lff.encodings.groups import Flattened
from lff.positions import grid


@dataclass(frozen=True)
class Falloff:
    """Similarities to a centre along rays from it; nan where a ray has left what the encoding knows.

    Angles are in radians, 0 towards larger columns and pi / 2 towards larger rows.
    """

    angles: Float[Tensor, " directions"]
    distances: Float[Tensor, " steps"]
    similarity: Float[Tensor, "directions steps"]

    def half(self, floor: int | float = 0.0) -> Float[Tensor, " directions"]:
        """In every direction the distance at which similarity has first fallen by half; inf where it has not on the whole ray.

        Args:
            floor: the similarity that counts as none. Sines of long wavelengths stay similar over a whole picture: they are
                compared from `least` up.
        """
        peak = self.similarity[:, :1]
        level = floor + (peak - floor) / 2
        fallen = self.similarity <= level
        last = fallen.int().argmax(-1).clamp(min=1)  # of no use where nothing has fallen
        pairs = torch.stack([last - 1, last], dim=-1)
        before, after = self.similarity.gather(-1, pairs).unbind(-1)
        near, far = self.distances[pairs].unbind(-1)
        crossing = near + (far - near) * (before - level[:, 0]) / (before - after)
        return torch.where(fallen.any(-1), crossing, math.inf)

    def roundness(self, floor: int | float = 0.0) -> float:
        """The longest over the shortest distance at which similarity has fallen by half, over all directions.

        1 for a ball; inf where similarity does not fall by half along some ray, as along the arms of a cross; nan where it falls
        by half along none.
        """
        half = self.half(floor)
        shortest = float(half.min())
        return float(half.max()) / shortest if math.isfinite(shortest) else math.nan

    @property
    def least(self) -> float:
        """The smallest similarity on any ray."""
        return float(self.similarity.nan_to_num(math.inf).min())

    @property
    def mean(self) -> Float[Tensor, " steps"]:
        """Over the directions that are known at a distance."""
        return self.similarity.nanmean(0)


@torch.no_grad()
def falloff(
    encoding: Encoding, centre: Num[Tensor, "2"], reach: int | float, *, directions: int = 360, steps: int = 128
) -> Falloff:
    """Similarity against distance and direction, from an encoding of two coordinates.

    A table knows whole cells alone: between them similarities, not encodings, are interpolated linearly along both axes.

    Args:
        encoding: of (row, col); `features(encoding)` for what it is before its MLP.
        centre: where the rays begin; a cell for tables.
        reach: their length, in the units of the positions.
        directions: number of rays.
        steps: samples of a ray after the centre.
    """
    if encoding.coords != 2:
        raise ValueError(f"encoding must take 2 coordinates to have directions, got one that takes {encoding.coords}")
    tables = [module for module in encoding.modules() if isinstance(module, Embed | Flattened)]
    if tables:
        extent = next(table.extent for table in tables if len(table.extent) == 2)
        whole = similarity(encoding, grid(extent), rearrange(centre, "c -> 1 c").float())[0]
        return map_falloff(whole, centre, reach, directions=directions, steps=steps)
    angles, distances, rays = _rays(centre, reach, directions, steps)
    at = rearrange(centre, "c -> 1 c").float()
    # A ray at a time: all of them together, with thousands of features, would fill a laptop's memory.
    return Falloff(angles, distances, torch.stack([similarity(encoding, ray, at)[0] for ray in rays]))


def map_falloff(
    similarities: Float[Tensor, "rows cols"],
    centre: Num[Tensor, "2"],
    reach: int | float,
    *,
    directions: int = 360,
    steps: int = 128,
) -> Falloff:
    """The same from a map of similarities to `centre` over a grid, interpolated linearly along both axes between its cells."""
    angles, distances, rays = _rays(centre, reach, directions, steps)
    return Falloff(angles, distances, _interpolated(similarities, rays))


def _rays(
    centre: Num[Tensor, "2"], reach: int | float, directions: int, steps: int
) -> tuple[Float[Tensor, " d"], Float[Tensor, " s"], Float[Tensor, "d s 2"]]:
    reach = arguments.positive("reach", reach)
    count = arguments.whole("directions", directions)
    angles = torch.arange(count, dtype=torch.float64) * (2 * math.pi / count)
    distances = torch.linspace(0, reach, arguments.whole("steps", steps) + 1)
    # Rounded from float64, so that the rays along an axis do not leave a table by a hair.
    towards = torch.stack([angles.sin(), angles.cos()], dim=-1).float()
    towards = torch.where(towards.abs() < 1e-6, 0.0, towards)
    rays = centre.float() + rearrange(distances, "s -> s 1") * rearrange(towards, "d c -> d 1 c")
    return angles.float(), distances, rays


def _interpolated(values: Float[Tensor, "rows cols"], at: Float[Tensor, "*batch 2"]) -> Float[Tensor, "*batch"]:
    rows, cols = values.shape
    row, col = at.unbind(-1)
    outside = (row < 0) | (row > rows - 1) | (col < 0) | (col > cols - 1)
    top, left = row.floor().clamp(0, max(rows - 2, 0)).long(), col.floor().clamp(0, max(cols - 2, 0)).long()
    bottom, right = (top + 1).clamp(max=rows - 1), (left + 1).clamp(max=cols - 1)
    down, across = row - top, col - left
    upper = values[top, left] * (1 - across) + values[top, right] * across
    lower = values[bottom, left] * (1 - across) + values[bottom, right] * across
    return torch.where(outside, math.nan, upper * (1 - down) + lower * down)
