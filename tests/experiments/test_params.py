import pytest
import torch

from lff.experiments import params


def test_the_counted_run_is_reproduced_to_the_last_digit() -> None:
    assert dict(params.counted_run()) == {
        "W_r, 384 x 2": 768,
        "bias of W_r": 384,
        "LayerNorm before W_1": 1536,
        "W_1 and B_1": 24608,
        "LayerNorm before W_2": 64,
        "W_2 and B_2": 25344,
        "colour table, 3 x 256": 768,
        "target variance of the KL loss": 1,
    }
    assert sum(n for _, n in params.counted_run()) == 53473


@pytest.mark.parametrize("task", [params.reformer, params.detr])
def test_every_reformer_and_detr_row_agrees_with_the_paper(task) -> None:
    assert [row.method for row in task() if not row.agrees] == []


def test_where_the_captioning_table_cannot_be_met() -> None:
    """docs/errata.md, P13: the four summed tables are too large for the printed size, Sine-4D's MLP in one group too."""
    assert [row.method for row in params.captioning() if not row.agrees] == ["Embed-4D", "Sine-4D+MLP-1/4"]


def test_hosts_without_their_encoding_have_the_counted_size() -> None:
    transformers = pytest.importorskip("transformers")
    with torch.device("meta"):
        reformer = transformers.ReformerModelWithLMHead(
            transformers.ReformerConfig(
                vocab_size=256,
                hidden_size=1024,
                num_attention_heads=8,
                attention_head_size=64,
                attn_layers=["lsh"] * 6,
                feed_forward_size=4096,
                hidden_act="gelu_new",
                max_position_embeddings=12288,
                axial_pos_shape=(64, 192),
                axial_pos_embds_dim=(512, 512),
                is_decoder=True,
                num_buckets=192,
                pad_token_id=None,
            )
        )
        vit = transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=1000))
    table = reformer.reformer.embeddings.position_embeddings
    assert params.count(reformer) - params.count(table) == params.REFORMER
    assert params.count(vit) - vit.vit.embeddings.position_embeddings.numel() == params.VIT
