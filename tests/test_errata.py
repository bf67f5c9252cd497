"""The paper's contradictions: the tests that docs/errata.md names exist, and those that belong to no one encoding are here."""

import math
import re
from pathlib import Path

import pytest
import torch

import lff
from lff.experiments import params

TESTS = Path(__file__).parent
ERRATA = (TESTS.parent / "docs" / "errata.md").read_text(encoding="utf-8")


def test_every_test_that_the_errata_name_exists() -> None:
    defined = {name for path in TESTS.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text("utf-8"))}
    named = set(re.findall(r"`(test_\w+)`", ERRATA))
    assert len(named) > 20
    assert named - defined == set()


def test_every_contradiction_has_its_entry() -> None:
    assert re.findall(r"^## (P\d+)\.", ERRATA, flags=re.MULTILINE) == [f"P{n}" for n in range(1, 20)]


def test_layer_norm_takes_the_scale_of_equation_2_off() -> None:
    """P5: what LayerNorm makes of r_x is what it makes of r_x without the 1/sqrt(|F|), up to its epsilon."""
    r_x = lff.FourierFeatures(2, 768)(torch.rand(100, 2) * 64)
    bare = torch.nn.functional.layer_norm(r_x * math.sqrt(768), (768,))
    normed = torch.nn.functional.layer_norm(r_x, (768,))
    torch.testing.assert_close(normed, bare, rtol=0.0, atol=0.02)
    assert (normed - bare).abs().max() > 0.001  # epsilon is not small beside the features' variance
    torch.testing.assert_close(torch.nn.functional.layer_norm(r_x, (768,), eps=1e-12), bare, rtol=0.0, atol=1e-4)


def test_gamma_is_in_the_units_of_the_positions() -> None:
    """P7: measuring positions and gamma in another unit changes nothing."""
    positions = torch.rand(50, 2) * 64
    torch.manual_seed(1)
    in_pixels = lff.LearnableFourier(2, 32, gamma=4.0)
    torch.manual_seed(1)
    in_shares = lff.LearnableFourier(2, 32, gamma=4.0 / 64)
    torch.testing.assert_close(in_shares(positions / 64), in_pixels(positions), atol=1e-4, rtol=1e-4)


def test_detr_adds_the_encoding_to_queries_and_keys_only() -> None:
    """P10: with queries and keys that ignore their input, the encoding has no way left into an encoder layer."""
    transformers = pytest.importorskip("transformers")
    modeling = pytest.importorskip("transformers.models.detr.modeling_detr")
    config = transformers.DetrConfig(d_model=16, encoder_attention_heads=2, encoder_ffn_dim=8, dropout=0.0)
    config._attn_implementation = "eager"
    layer = modeling.DetrEncoderLayer(config).eval()
    tokens, encoded = torch.randn(1, 12, 16), lff.Sine(2, 16)(lff.grid((3, 4))).reshape(1, 12, 16)

    def change() -> float:
        with torch.no_grad():
            with_it = layer(tokens, None, spatial_position_embeddings=encoded)
            without = layer(tokens, None, spatial_position_embeddings=torch.zeros_like(encoded))
        return (with_it[0] - without[0]).abs().max().item()

    assert change() > 1e-4
    torch.nn.init.zeros_(layer.self_attn.q_proj.weight)
    torch.nn.init.zeros_(layer.self_attn.k_proj.weight)
    assert change() == 0


def test_vit_with_the_source_s_sizes_is_larger_than_its_table() -> None:
    """P14."""
    table, fourier = params.vit()
    assert (table.encoding, fourier.encoding) == (151_296, 1_181_952)
