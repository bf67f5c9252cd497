"""A trained ViT after `lff.swap(fit=True)`, at the size it was trained at and at others, against its own table resized.

    python benchmarks/resize.py --data DIR --device cuda

DIR is an image folder of 64 x 64 pixels, DIR/{train,val}/<class>/*.JPEG. For every seed a timm VisionTransformer with a learned
table is trained on it; then the table is resized, or an encoding is fitted to it and takes its place. Nothing is trained after
that. Top-1 is of all validation images, with bfloat16 autocast as in training (float32 on a CPU); they are resized with
antialiased bicubic interpolation and rounded to bytes. The encodings were settled beforehand and every one has its rows: none is
chosen by what it gave. "rescale" and "extend" are the argument `unseen` of `lff.swap`; "no positions" is the model after a swap
for zeros. The fit's error is |encoding - table| / |table - its mean over positions|, as `lff.fit` reports it, and its seconds are
those of the CPU. The record is written anew after every seed.
"""

import argparse
import copy
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tables
import torch
from einops import rearrange
from PIL import Image
from timm.layers import resample_abs_pos_embed
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torch.nn import functional

import lff
from lff.experiments.environment import environment

Size = tuple[int, int]  # (height, width)

PATCH, TRAINED = 4, (64, 64)
SIZES: tuple[Size, ...] = (TRAINED, (48, 48), (80, 80), (96, 96), (128, 128), (64, 96))
RATE, DECAY, SMOOTHING, WARM_UP = 1e-3, 0.05, 0.1, 0.1  # WARM_UP is a share of all steps
PADDING = 4  # of the random crop


class Data(NamedTuple):
    """Pictures as bytes, [images, height, width, 3], and the number of each one's class."""

    images: Tensor
    labels: Tensor


class Choice(NamedTuple):
    """An encoding to fit: gamma is in patches; steps are what `lff.swap(fit=True)` takes where there are none here."""

    gamma: float
    hidden: int
    steps: int | None = None

    def __str__(self) -> str:
        return f"gamma {self.gamma:g}, hidden {self.hidden}" + ("" if self.steps is None else f", {self.steps} steps")


CHOICES = (*(Choice(gamma, hidden) for gamma in (2.0, 4.0, 8.0) for hidden in (32, 128, 256)), Choice(4.0, 128, steps=0))


class Trained(NamedTuple):
    """A model's table for its patches, where its rows are, and the model; all on the CPU."""

    positions: Tensor
    table: Tensor
    model: VisionTransformer


def read(folder: Path, classes: Sequence[str], limit: int | None, device: torch.device) -> Data:
    """All images of a folder, or `limit` of them at even distances, which takes some of every class."""
    files = sorted(folder.glob("*/*.JPEG"))
    if not files:
        raise SystemExit(f"--data must hold {folder.name}/<class>/*.JPEG, got none in {folder}")
    if limit:
        files = files[:: max(1, len(files) // limit)][:limit]
    with ThreadPoolExecutor() as pool:
        images = torch.from_numpy(np.stack(list(pool.map(decoded, files))))
    if tuple(images.shape[1:3]) != TRAINED:
        raise SystemExit(f"--data must hold images of {TRAINED}, got {tuple(images.shape[1:3])}")
    return Data(images.to(device), torch.tensor([classes.index(file.parent.name) for file in files], device=device))


def decoded(file: Path) -> np.ndarray:
    with Image.open(file) as image:
        return np.array(image.convert("RGB"))


def resized(images: Tensor, size: Size) -> Tensor:
    """Pictures of another size, as bytes."""
    if tuple(images.shape[1:3]) == size:
        return images
    pixels = rearrange(images, "n h w c -> n c h w").float().contiguous()
    parts = [functional.interpolate(part, size=size, mode="bicubic", antialias=True) for part in pixels.split(512)]
    return rearrange(torch.cat([part.round().clamp(0, 255).byte() for part in parts]), "n c h w -> n h w c").contiguous()


def as_input(images: Tensor) -> Tensor:
    """[images, 3, height, width], about a mean of 0 and a variance of 1."""
    return (rearrange(images, "n h w c -> n c h w").float() / 255 - 0.5) / 0.25


def augmented(images: Tensor, generator: torch.Generator) -> Tensor:
    """Each picture moved by at most the padding in both directions, and half of them mirrored."""
    n, height, width, _ = images.shape
    padded = functional.pad(images, (0, 0, PADDING, PADDING, PADDING, PADDING))

    def drawn(high: int) -> Tensor:
        return torch.randint(high, (n, 1), generator=generator, device=images.device)

    rows = drawn(2 * PADDING + 1) + torch.arange(height, device=images.device)
    cols = drawn(2 * PADDING + 1) + torch.arange(width, device=images.device)
    cols = torch.where(drawn(2).bool(), cols.flip(1), cols)
    of = torch.arange(n, device=images.device)
    return padded[of[:, None, None], rows[:, :, None], cols[:, None, :]]


def batches(data: Data, size: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """One epoch in a new order, without the rest that fills no batch."""
    order = torch.randperm(len(data.labels), generator=generator, device=data.labels.device)
    for indices in order[: len(order) // size * size].split(size):
        yield as_input(augmented(data.images[indices], generator)), data.labels[indices]


def autocast(device: torch.device) -> torch.autocast:
    """To bfloat16 on a GPU. CPUs without instructions for it take twenty times as long."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")


def rate(step: int, steps: int) -> float:
    """Of the highest learning rate: a linear warm-up, then half a cosine."""
    warm_up = max(1, round(WARM_UP * steps))
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up)))


def optimiser(model: VisionTransformer) -> torch.optim.AdamW:
    """Weight decay on matrices alone; neither the table nor the class token is one."""
    free = model.no_weight_decay()
    named = list(model.named_parameters())
    decayed = [p for name, p in named if p.ndim > 1 and name not in free]
    others = [p for name, p in named if p.ndim <= 1 or name in free]
    groups = [{"params": decayed, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=RATE, fused=named[0][1].is_cuda)


def trained(args: argparse.Namespace, seed: int, train: Data, val: Data, classes: int) -> VisionTransformer:
    """A model with its own table, after all epochs."""
    torch.manual_seed(seed)
    device = train.images.device
    model = VisionTransformer(
        img_size=TRAINED,
        patch_size=PATCH,
        embed_dim=args.width,
        depth=args.layers,
        num_heads=max(1, args.width // 64),
        num_classes=classes,
    ).to(device)
    run = torch.compile(model) if args.compile else model
    steps = args.epochs * (len(train.labels) // args.batch)
    if not steps:
        raise SystemExit(f"--batch must be at most the {len(train.labels)} training images, and --epochs at least 1")
    optimise = optimiser(model)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimise, lambda step: rate(step, steps))
    generator = torch.Generator(device).manual_seed(seed)
    for epoch in range(args.epochs):
        start, losses = time.perf_counter(), []
        model.train()
        for images, labels in batches(train, args.batch, generator):
            with autocast(device):
                loss = functional.cross_entropy(run(images), labels, label_smoothing=SMOOTHING)
            optimise.zero_grad()
            loss.backward()
            optimise.step()
            schedule.step()
            losses.append(loss.detach())
        mean, right = torch.stack(losses).mean().item(), top_1(model, val.images, val.labels, args.batch)
        seconds = time.perf_counter() - start
        print(f"seed {seed}, epoch {epoch + 1}: loss {mean:.3f}, top-1 {100 * right:.1f}, {seconds:.1f} s", flush=True)
    return model.eval()


@torch.no_grad()
def top_1(model: nn.Module, images: Tensor, labels: Tensor, batch: int) -> float:
    model.eval()
    with autocast(images.device):
        right = [
            (model(as_input(x)).argmax(-1) == y).sum() for x, y in zip(images.split(batch), labels.split(batch), strict=True)
        ]
    return torch.stack(right).sum().item() / len(labels)


@torch.no_grad()
def with_resized_table(model: VisionTransformer, size: Size, interpolation: str) -> VisionTransformer:
    """The model made for pictures of another size, as timm does it."""
    other = copy.deepcopy(model)
    other.patch_embed.set_input_size(img_size=size)
    old, new = list(model.patch_embed.grid_size), list(other.patch_embed.grid_size)
    table = resample_abs_pos_embed(
        model.pos_embed, new, old, num_prefix_tokens=model.num_prefix_tokens, interpolation=interpolation
    )
    other.pos_embed = nn.Parameter(table)
    return other


def on_cpu(model: VisionTransformer) -> Trained:
    model = copy.deepcopy(model).cpu()
    height, width = model.patch_embed.grid_size
    rows = model.pos_embed.detach()[0, model.num_prefix_tokens :]
    return Trained(lff.grid((height, width)), rearrange(rows, "(h w) d -> h w d", h=height), model)


def fitted(choice: Choice, own: Trained, seed: int) -> tuple[lff.Encoding, nn.Module, dict[str, float]]:
    """The encoding that has learned a table, a copy of the model that holds it, and what the fit left and took."""
    torch.manual_seed(seed)
    encoding = lff.LearnableFourier(2, own.table.shape[-1], gamma=choice.gamma, hidden=choice.hidden)
    closed = lff.fit(copy.deepcopy(encoding), own.positions, own.table, steps=0).closed
    model = copy.deepcopy(own.model)
    start = time.perf_counter()
    if choice.steps is None:
        lff.swap(model, encoding, fit=True, unseen="rescale")
    else:
        lff.fit(encoding, own.positions, own.table, steps=choice.steps)
        lff.swap(model, encoding, unseen="rescale")
    seconds = time.perf_counter() - start
    return encoding, model, {"closed": closed, "error": relative_error(encoding, own), "seconds": seconds}


@torch.no_grad()
def relative_error(encoding: lff.Encoding, own: Trained) -> float:
    """What `lff.fit` reports, of the encoding that is in the model."""
    varies = own.table - own.table.mean((0, 1))
    return float((encoding(own.positions) - own.table).norm() / varies.norm())


def measured(model: VisionTransformer, seed: int, views: dict[Size, Tensor], val: Data, batch: int) -> dict[str, dict[str, Any]]:
    """Of one trained model: top-1 at every size by every way to give it positions there, and what the fits left."""

    def everywhere(at: Callable[[Size], nn.Module]) -> dict[str, float]:
        return {named(size): top_1(at(size), images, val.labels, batch) for size, images in views.items()}

    found: dict[str, dict[str, Any]] = {}
    for way in ("bicubic", "bilinear"):
        found[f"its table, {way}"] = {"top_1": everywhere(lambda size, way=way: with_resized_table(model, size, way))}
    none = lff.swap(copy.deepcopy(model), lff.Zero(2, model.embed_dim))
    found["no positions"] = {"top_1": everywhere(lambda _: none)}
    own = on_cpu(model)
    for choice in CHOICES:
        encoding, swapped, fit = fitted(choice, own, seed)
        swapped.to(val.images.device)
        found[f"{choice}, rescale"] = {"top_1": everywhere(lambda _, swapped=swapped: swapped), **fit}
        lff.swap(lff.unswap(swapped), encoding, unseen="extend")
        found[f"{choice}, extend"] = {"top_1": everywhere(lambda _, swapped=swapped: swapped), **fit}
        print(f"seed {seed}, {choice}: error {fit['error']:.4f}, {fit['seconds']:.1f} s", flush=True)
    return found


def named(size: Size) -> str:
    return f"{size[0]}x{size[1]}"


def row(how: str, seeds: list[int], found: list[dict[str, Any]]) -> dict[str, Any]:
    """A row of the table, in percent, and what is behind it, in shares of 1."""
    sizes = {size: [one["top_1"][size] for one in found] for size in found[0]["top_1"]}
    fits = {key: [one[key] for one in found] for key in ("closed", "error", "seconds") if key in found[0]}
    return {
        "how": how,
        "error": spread(fits["error"], 2) if fits else None,
        **{size: spread(values, 1) for size, values in sizes.items()},
        "mean": {key: statistics.fmean(values) for key, values in {**sizes, **fits}.items()},
        "per_seed": [{"seed": seed, **one} for seed, one in zip(seeds, found, strict=True)],
    }


def spread(values: Sequence[float], digits: int) -> str:
    mean, low, high = (f"{100 * value:.{digits}f}" for value in (statistics.fmean(values), min(values), max(values)))
    return f"{mean} ({low} to {high})"


def fit_of_a_base_model() -> dict[str, Any]:
    """The time of one fit to a table as large as that of a ViT-B/16, drawn at random and smooth."""
    torch.manual_seed(0)
    coarse = torch.randn(1, 768, 7, 7)
    table = rearrange(0.02 * functional.interpolate(coarse, size=(14, 14), mode="bicubic"), "1 d h w -> h w d")
    choice = Choice(4.0, 128)
    encoding = lff.LearnableFourier(2, 768, gamma=choice.gamma, hidden=choice.hidden)
    start = time.perf_counter()
    fit = lff.fit(encoding, lff.grid((14, 14)), table)
    seconds = time.perf_counter() - start
    print(f"14x14x768, {choice}: error {fit.error:.4f}, {seconds:.1f} s", flush=True)
    return {"table": "14x14x768", "encoding": str(choice), "seconds": seconds, **fit._asdict(), "device": environment()["device"]}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what a ViT keeps after a swap, and at other image sizes.")
    parser.add_argument("--data", type=Path, required=True, help="an image folder: train/<class>/*.JPEG and val/<class>/*.JPEG")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--limit", type=int, help="so many training images, and a tenth of that for validation")
    parser.add_argument("--threads", type=int, default=4, help="of the CPU, for the fits")
    parser.add_argument("--compile", action="store_true", help="compile the training step's model")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    torch.set_num_threads(args.threads)
    device = torch.device(args.device)
    start = time.perf_counter()
    classes = sorted(folder.name for folder in (args.data / "train").iterdir() if folder.is_dir())
    train = read(args.data / "train", classes, args.limit, device)
    val = read(args.data / "val", classes, args.limit and max(1, args.limit // 10), device)
    views = {size: resized(val.images, size) for size in SIZES}
    print(f"{len(train.labels)} and {len(val.labels)} images, {time.perf_counter() - start:.1f} s", flush=True)
    base = fit_of_a_base_model()
    found: list[dict[str, dict[str, Any]]] = []
    for seed in args.seeds:
        model = trained(args, seed, train, val, len(classes))
        found.append(measured(model, seed, views, val, args.batch))
        done = args.seeds[: len(found)]
        rows = [row(how, done, [one[how] for one in found]) for how in found[0]]
        about = environment(device=device.type, seeds=done)
        tables.save(f"resize-{device.type}", {"environment": about, "fit_of_a_base_model": base, "rows": rows})
        print(f"{time.perf_counter() - start:.0f} s so far", flush=True)


if __name__ == "__main__":
    main()
