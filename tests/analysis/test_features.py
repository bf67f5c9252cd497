import pytest
import torch

import lff
from lff.analysis import features, landmarks


@pytest.mark.parametrize(
    ("name", "coords", "kind"),
    [
        ("Learnable-Fourier+MLP", 2, lff.FourierFeatures),
        ("Learnable-Fourier+MLP-2/2", 4, lff.FourierFeatures),
        ("Learnable-Fourier+Dense", 2, lff.FourierFeatures),
        ("Learnable-Fourier+Scale", 2, lff.FourierFeatures),
        ("Sine-2D+MLP", 2, lff.Sine),
        ("Embed-2D", 2, lff.Embed),
        ("MLP", 2, lff.MLP),
    ],
)
def test_what_follows_features_is_taken_off(name: str, coords: int, kind: type) -> None:
    encode = lff.build(name, coords=coords, depth=16, extent=(8,) * coords)
    assert type(features(encode)) is kind


def test_landmarks_are_the_papers_on_its_grids() -> None:
    assert landmarks(64).tolist() == [[4, 4], [4, 57], [31, 31], [57, 4], [57, 57]]
    assert landmarks(42).tolist() == [[5, 5], [5, 38], [21, 21], [38, 5], [38, 38]]


@pytest.mark.parametrize("size", [(1, 1), (3, 40), (16, 16)])
def test_landmarks_are_cells_of_any_grid(size: tuple[int, int]) -> None:
    found = landmarks(size)
    assert ((found >= 0) & (found < torch.tensor(size))).all()
    assert torch.equal(found, found.round())
