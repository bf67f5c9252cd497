"""Widget captioning: BLEU, ROUGE-L, CIDEr, METEOR and SPICE of the captions found, on seen and unseen positions."""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from lff.encodings.encoding import Encoding
from lff.experiments.methods import Row
from lff.experiments.task import Measure, Request, Task, World
from lff.experiments.tasks.captioning import config as presets
from lff.experiments.tasks.captioning import metrics, positions
from lff.experiments.tasks.captioning import model as models
from lff.experiments.tasks.captioning.beam import search
from lff.experiments.tasks.captioning.config import CaptioningConfig
from lff.experiments.tasks.captioning.paper import TABLE
from lff.experiments.tasks.captioning.screens import Screen
from lff.experiments.tasks.captioning.source import Source, read
from lff.experiments.tasks.captioning.tensors import Batch, Screens
from lff.experiments.tasks.captioning.words import PADDING, START, Vocabulary, glove

FEATURES = ("Sine-4D", "Fixed-Fourier", "Learnable-Fourier")  # that may stand in front of the MLP
EVALUATED = 64  # screens at a time
SEARCHED = 512  # widgets at a time


class Captioning(Task[CaptioningConfig]):
    """Section 4.4: what a widget of a screen is called."""

    default: ClassVar[str] = "Embed-4D"
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure("cider", "CIDEr", 100, 1),
        Measure("bleu1", "BLEU-1", 100, 1),
        Measure("bleu2", "BLEU-2", 100, 1),
        Measure("rouge", "ROUGE-L", 100, 1),
        Measure("meteor", "METEOR", 100, 1),
        Measure("spice", "SPICE", 100, 1),
        Measure("cider_seen", "CIDEr of seen positions", 100, 1),
        Measure("cider_unseen", "CIDEr of unseen positions", 100, 1),
        Measure("loss", "Loss of a word, nats", larger=False),
    )
    presets: ClassVar[dict[str, Any]] = {
        "tiny": presets.tiny,
        "demo": presets.demo,
        "mini": presets.mini,
        "paper": presets.paper,
    }
    panels: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "Baselines": ("Embed-4D", "none", "MLP", "MLP(normalize=False)", "Sine-4D", "Learnable-Fourier+MLP-4/1"),
        "Groups of coordinates": tuple(f"{name}+MLP-{groups}" for name in FEATURES for groups in ("1/4", "2/2", "4/1")),
        "Components": ("Learnable-Fourier-2/2", "Fixed-Fourier+MLP-2/2", "Learnable-Fourier+MLP-2/2"),
        "The KL loss": ("Learnable-Fourier+MLP-2/2", "Learnable-Fourier+MLP-2/2(kl=1.0)"),
    }

    def __init__(self, config: CaptioningConfig, data: Path | None) -> None:
        super().__init__(config, data)
        self.source = _read(config, data)
        split = self.source.split
        texts = (words for screen in split.train for e in screen.elements for words in (e.text, e.resource, *e.captions))
        self.vocabulary = Vocabulary.of(texts, config.vocabulary)
        self.train = self._tensors(split.train, 0)
        #: What is evaluated, and the words that people said of it.
        self.judged: list[Screen] = getattr(split, config.judge)[: config.screens or None]
        self.test = self._tensors(self.judged, 2 if config.judge == "test" else 1)
        self.references = [
            [" ".join(words) for words in screen.elements[number].captions] for screen in self.judged for number in screen.targets
        ]

    @classmethod
    def published(cls, config: CaptioningConfig) -> Mapping[str, Mapping[str, float]]:
        return TABLE

    @classmethod
    def notes(cls, config: CaptioningConfig, data: Path | None) -> list[str]:
        """What is wrong with the data, and which metrics cannot be had here."""
        return [*_read(config, data).problems, *metrics.without().values()]

    @property
    def samples(self) -> int:
        return len(self.train)

    @cached_property
    def seen(self) -> Tensor:
        """Of every judged widget, whether its position is that of an element of a training screen."""
        known = positions.of_elements(self.source.split.train)
        return torch.from_numpy(positions.seen(positions.of_targets(self.judged), known))

    def model(self, row: Row) -> nn.Module:
        given = glove(Path(self.config.glove), self.vocabulary) if self.config.glove else None
        return models.build(self.config, row, len(self.vocabulary), given)

    def batch(self, request: Request, device: torch.device) -> Batch:
        return self.train.batch(request.indices, device, request.keys, even=self.config.compile == "graphs")

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        logits = model(batch, shifted(batch.captions))
        return functional.cross_entropy(logits.flatten(0, 1).float(), batch.captions.flatten(), ignore_index=PADDING)

    def evaluate(self, model: nn.Module, world: World) -> dict[str, float]:
        said, loss = self._said(model, world)
        return {"loss": loss, "cider": float(metrics.cider(said, self.references).mean())}

    def final(self, model: nn.Module, world: World) -> dict[str, Any]:
        said, loss = self._said(model, world)
        each = metrics.cider(said, self.references)
        parts = {"cider_seen": each[self.seen.numpy()], "cider_unseen": each[~self.seen.numpy()]}
        distinct = list(dict.fromkeys(said))
        return {
            "loss": loss,
            "cider": float(each.mean()),
            **metrics.scores(said, self.references),
            **dict.fromkeys(("meteor", "spice")),  # Java programs: `complete` does them for all runs at once
            **{key: float(part.mean()) if len(part) else None for key, part in parts.items()},
            "captions": {"texts": distinct, "of_widgets": [distinct.index(text) for text in said]},
        }

    def complete(self, folder: Path) -> None:
        """Adds METEOR and SPICE to the runs that have captions and not yet these."""
        from lff.experiments.tasks.captioning.score import score

        score(folder, self.references)

    def keeps(self, model: nn.Module) -> dict[str, Tensor]:
        return model.state_dict() if self.config.keep else {}

    def spells(self) -> dict[str, str]:
        return {"words": json.dumps(list(self.vocabulary.words)), "types": json.dumps(list(self.source.types))}

    def layers(self, model: nn.Module) -> list[nn.Module]:
        assert isinstance(model, models.Captioner)
        return [model.encoder, model.decoder]

    def encoding(self, model: nn.Module) -> Encoding:
        assert isinstance(model, models.Captioner)
        assert isinstance(model.position, Encoding)
        return model.position

    def about(self) -> dict[str, Any]:
        text = json.dumps([self.references, [self.source.types, list(self.vocabulary.words)]])
        return {
            **super().about(),
            "widgets": int(self.train.widgets.sum()),
            "judged_widgets": len(self.references),
            "seen_positions": int(self.seen.sum()),
            "words": len(self.vocabulary),
            "data": hashlib.sha256(text.encode()).hexdigest()[:16],
        }

    def _tensors(self, screens: list[Screen], split: int) -> Screens:
        pictures = self.source.pictures[split][: sum(len(s.targets) for s in screens)] if self.source.pictures else None
        lengths = {"text_length": self.config.text_length, "caption_length": self.config.caption_length}
        return Screens(screens, self.vocabulary, self.source.types, pictures, **lengths)

    def _said(self, model: Any, world: World) -> tuple[list[str], float]:
        """The captions of all judged widgets, and the mean loss of a word of their first reference.

        Each process does its share of the screens; the words of all are their sum, since each writes into rows of its own.
        """
        share = world.share(len(self.test))
        firsts = self.test.widgets.cumsum(0) - self.test.widgets
        words = torch.zeros(len(self.references), self.config.caption_length, dtype=torch.int64, device=world.device)
        sums = torch.zeros(2, dtype=torch.float64, device=world.device)
        for screens in torch.split(torch.arange(share.start, share.stop), EVALUATED):
            batch = self.test.batch(screens, world.device)
            memory = model.encode(batch)
            start = int(firsts[screens[0]])
            for part, wanted in zip(torch.split(memory, SEARCHED), torch.split(batch.captions, SEARCHED), strict=True):
                logits = model.decode(part, shifted(wanted))
                wrong = functional.cross_entropy(
                    logits.flatten(0, 1).float(), wanted.flatten(), ignore_index=PADDING, reduction="sum"
                )
                sums += torch.stack([wrong.double(), (wanted != PADDING).sum().double()])
                found = search(
                    model, part, length=self.config.caption_length, width=self.config.beam, penalty=self.config.penalty
                )
                words[start : start + len(part)] = found.words
                start += len(part)
        said = [self.vocabulary.text(row) for row in world.sum(words).tolist()]
        total, count = world.sum(sums).tolist()
        return said, total / count


def shifted(captions: Tensor) -> Tensor:
    """What the decoder is shown: START, and every word but the last."""
    return torch.cat([torch.full_like(captions[:, :1], START), captions[:, :-1]], 1)


def _read(config: CaptioningConfig, data: Path | None) -> Source:
    return read(data, pixels=config.pixels, own_text=config.own_text, cache=Path.home() / ".cache" / "lff")
