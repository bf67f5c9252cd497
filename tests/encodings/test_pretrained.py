import json
from pathlib import Path

import pytest
import torch

import lff
from conftest import small

pytestmark = pytest.mark.plain


def test_every_method_comes_back_from_disk(method: str, tmp_path: Path) -> None:
    encode, positions = small(method)
    encode.eval()
    encode.save_pretrained(tmp_path / "encoding")
    assert {path.name for path in (tmp_path / "encoding").iterdir()} == {"config.json", "model.safetensors"}
    for cls in (lff.Encoding, type(encode)):
        back = cls.from_pretrained(tmp_path / "encoding").eval()
        assert type(back) is type(encode)
        assert repr(back) == repr(encode)
        assert torch.equal(back(positions), encode(positions))


def test_dtypes_come_back(tmp_path: Path) -> None:
    encode = lff.LearnableFourier(2, 8).bfloat16()
    encode.save_pretrained(tmp_path)
    back = lff.Encoding.from_pretrained(tmp_path)
    assert {name: p.dtype for name, p in back.named_parameters()} == {name: p.dtype for name, p in encode.named_parameters()}
    assert torch.equal(back(torch.ones(3, 2)), encode(torch.ones(3, 2)))


class Doubled(lff.Encoding):
    """A user's own encoding, around one of ours."""

    def __init__(self, inner: lff.Encoding, *, name: str = "x") -> None:
        super().__init__(inner.coords, inner.depth)
        self.inner = inner

    def encode(self, positions: torch.Tensor) -> torch.Tensor:
        return 2 * self.inner(positions)


def test_an_encoding_of_the_user_s_own_comes_back_too(tmp_path: Path) -> None:
    encode = Doubled(lff.Embed((3, 4), 8, join="cell"), name="y")
    encode.save_pretrained(tmp_path)
    back = Doubled.from_pretrained(tmp_path)
    assert back.arguments["name"] == "y"
    assert torch.equal(back(lff.grid((3, 4))), encode(lff.grid((3, 4))))


def test_broken_and_foreign_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"directory must hold config\.json and model\.safetensors.*is missing"):
        lff.Encoding.from_pretrained(tmp_path)
    lff.Sine(2, 8).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="directory must hold a LearnableFourier, got a Sine"):
        lff.LearnableFourier.from_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    for broken, message in (
        ({**config, "class": "os.system"}, "class must be one of .* got 'os.system'"),
        ({"arguments": {}}, "must be what save_pretrained writes, got one with KeyError"),
        ({**config, "arguments": {"shape": 3}}, "must be what save_pretrained writes, got one with TypeError"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(broken))
        with pytest.raises(ValueError, match=message):
            lff.Encoding.from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="must be what save_pretrained writes"):
        lff.Encoding.from_pretrained(tmp_path)
