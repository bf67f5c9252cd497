from pathlib import Path

import numpy as np
import pytest
from image_folders import smooth
from PIL import Image

from lff.experiments.data import centre_crop, keys, train_crop


def test_a_random_crop_is_a_function_of_its_key() -> None:
    picture = smooth(60, 40)
    crops = [train_crop(picture, 24, key).tobytes() for key in (5, 5, 6, -5, 2**63 - 1, -(2**63))]
    assert crops[0] == crops[1]
    assert len(set(crops[1:])) == 5


def test_random_crops_keep_to_area_and_aspect_and_half_are_mirrored() -> None:
    # The red channel is the column, the green one the row, so that a crop tells where it was cut.
    width, height = 250, 200
    picture = Image.fromarray(
        np.stack(np.broadcast_arrays(np.arange(width)[None], np.arange(height)[:, None], 0), axis=-1).astype(np.uint8)
    )
    areas, aspects, mirrored = [], [], 0
    for key in keys(0, 0, 600).tolist():
        crop = np.asarray(train_crop(picture, 16, key)).astype(float)
        across, down = crop[8, -1, 0] - crop[8, 0, 0], crop[-1, 8, 1] - crop[0, 8, 1]
        mirrored += across < 0
        w, h = abs(across) * 16 / 15, down * 16 / 15
        areas.append(w * h / (width * height))
        aspects.append(w / h)
    assert 0.04 < min(areas) < 0.1
    assert 0.9 < max(areas) < 1.05
    assert min(aspects) > 0.72
    assert max(aspects) < 1.39
    # The largest areas fit with few aspects only, so the mean is a little under the middle.
    assert 0.4 < np.mean(areas) < 0.55
    assert abs(np.mean(np.log(aspects))) < 0.05
    assert 0.43 < mirrored / 600 < 0.57


@pytest.mark.parametrize("size", [(3, 400), (400, 3), (1, 1)])
def test_pictures_of_any_shape_can_be_cropped(size: tuple[int, int]) -> None:
    assert train_crop(smooth(*size), 16, 1).size == (16, 16)
    assert centre_crop(smooth(*size), 16).size == (16, 16)


@pytest.mark.parametrize(("width", "height"), [(300, 200), (200, 333), (256, 256), (511, 97)])
def test_the_centre_crop_is_resizing_then_cropping(width: int, height: int) -> None:
    picture = smooth(width, height)
    scale = 146 / min(width, height)
    resized = picture.resize((round(width * scale), round(height * scale)), Image.Resampling.BILINEAR)
    left, top = (resized.width - 128) // 2, (resized.height - 128) // 2
    expected = np.asarray(resized.crop((left, top, left + 128, top + 128))).astype(int)
    # 146 = 128 * 256 / 224, rounded. Each of the two axes may round one level off.
    assert abs(np.asarray(centre_crop(picture, 128)) - expected).max() <= 2


def test_a_picture_of_the_right_size_is_left_alone() -> None:
    picture = smooth(64, 64)
    assert centre_crop(picture, 64, 64).tobytes() == picture.tobytes()


def test_a_crop_larger_than_what_is_resized_to_is_refused() -> None:
    with pytest.raises(ValueError, match="resize must be at least size, got resize=8 and size=16"):
        centre_crop(smooth(32, 32), 16, 8)


@pytest.mark.parametrize("size", [31, 32, 100, 250])
def test_a_jpeg_is_decoded_small_but_never_smaller_than_needed(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    smooth(1003, 757).save(tmp_path / "large.jpg", quality=95)
    sizes: list[tuple[tuple[int, int], tuple[float, ...]]] = []
    resize = Image.Image.resize

    def spy(image: Image.Image, to: tuple[int, int], resample: int, box: tuple[float, ...]) -> Image.Image:
        sizes.append((image.size, box))
        return resize(image, to, resample, box=box)

    monkeypatch.setattr(Image.Image, "resize", spy)
    for key in [None, *range(20)]:
        with Image.open(tmp_path / "large.jpg") as lazy, Image.open(tmp_path / "large.jpg") as whole:
            whole.load()
            crops = [centre_crop(image, size) if key is None else train_crop(image, size, key) for image in (lazy, whole)]
        assert abs(np.asarray(crops[0]).astype(int) - np.asarray(crops[1])).max() <= 6
        (small, box), (full, full_box) = sizes[-2:]
        assert full == (1003, 757)
        for first, last, side in ((0, 2, 0), (1, 3, 1)):
            assert box[last] - box[first] >= min(size, full_box[last] - full_box[first])
            assert box[last] <= small[side]
    assert min(small[0] for small, _ in sizes) < 600  # it does happen
