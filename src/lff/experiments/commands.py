"""The subcommands of `lff`. Those that train take every setting of the task's config as an option, with a preset's values."""

import dataclasses
import difflib
import importlib
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from lff.experiments.problems import Problem, plainly
from lff.experiments.tasks import TASKS


@dataclass(frozen=True)
class Compare:
    """Trains every method with every seed, and writes the table and report.html: lff compare [TASK] [options].

    TASK is classification, generation, detection, captioning, or my_module:MyTask for one of your own. Runs that are finished
    are not run again; a run that was killed goes on. `lff compare TASK --preset NAME --help` lists every setting with the
    preset's values.
    """

    preset: str = "demo"
    """tiny, demo, mini or paper: the settings to start from."""
    data: Path | None = None
    """Folder of the data set; by default the one that ships with the package."""
    out: Path | None = None
    """Folder for the runs and the report; by default runs/TASK-PRESET. Several processes and machines may share it."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train."""
    workers: int = 0
    """Processes at once on this machine, spread over its GPUs; 0 takes one for each GPU, or for each core without one."""
    silent: bool = False
    """Show no progress."""


@dataclass(frozen=True)
class Train:
    """Trains one method with one seed: lff train TASK --method NAME --seed N [options]. Under torchrun or SLURM, on all of it."""

    method: str
    """A key of lff.METHODS, options in brackets."""
    seed: int = 0
    """Decides the host's weights and the order of the data."""
    preset: str = "demo"
    """tiny, demo, mini or paper: the settings to start from."""
    data: Path | None = None
    """Folder of the data set; by default the one that ships with the package."""
    out: Path | None = None
    """Folder for the run, shared with `lff compare`; by default runs/TASK-PRESET."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train."""
    silent: bool = False
    """Show no progress."""


def run(arguments: list[str]) -> None:
    """`lff compare ...` or `lff train ...`."""
    from lff.experiments import compare as comparing
    from lff.experiments.engine import leave

    command, name, rest = arguments[0], "classification", arguments[1:]
    if rest and not rest[0].startswith("-"):
        name, rest = rest[0], rest[1:]
    where, preset, config, kind = _parse(command, name, rest)
    comparison = comparing.Comparison(
        task=name,
        kind=kind,
        preset=preset,
        config=config,
        seeds=(where.seed,) if command == "train" else tuple(range(config.seeds)),
        data=where.data,
        out=where.out or Path("runs") / f"{name.replace(':', '.')}-{preset}",
        command=f"lff {shlex.join(arguments)}",
    )
    comparison.rows  # noqa: B018  # a wrong name is told before anything is written
    try:
        if command == "train":
            _train(comparison, where)
        else:
            _compare(comparison, where, arguments)
    except SystemExit:
        leave()
        raise
    leave()  # not after an error: the others may be waiting for this process


def _compare(comparison: Any, where: Any, arguments: list[str]) -> None:
    from lff.experiments import compare as comparing
    from lff.experiments import report as reporting
    from lff.experiments import workers
    from lff.experiments.training import Stopped

    if not (where.silent and (comparison.out / "compare.json").exists()):  # a worker leaves its parent's as it is
        comparison.declare()
        _say_notes(comparison)
    try:
        count = min(where.workers or workers.fitting(comparison, where.device), len(comparison.left()))
        if count > 1:
            workers.run(comparison, arguments, count)
        fabric, task = comparing.prepare(comparison, where.device)
        comparing.work(comparison, fabric, task, silent=where.silent)
        if where.silent:
            return
        comparing.measure_speed(comparison, fabric, task)
        if fabric.global_rank == 0:
            task.complete(comparison.out)
    except Stopped as stopped:
        print(f"lff: {stopped}", file=sys.stderr)
        raise SystemExit(143) from None
    wrong = comparison.failures()
    if fabric.global_rank == 0:
        page = reporting.write(comparison.out)
        print(reporting.table(comparison.out))
        for line in wrong:
            print(f"lff: {line}", file=sys.stderr)
        print(f"The report is {page}")
    if wrong:
        raise SystemExit(2)


def _train(comparison: Any, where: Any) -> None:
    from lff.experiments import compare as comparing
    from lff.experiments.methods import parse
    from lff.experiments.training import Stopped

    comparison.declare()
    if not where.silent:
        _say_notes(comparison)
    try:
        fabric, task = comparing.prepare(comparison, where.device)
        comparing.one(comparison, parse(where.method), where.seed, fabric, task, silent=where.silent)
    except Stopped as stopped:
        print(f"lff: {stopped}", file=sys.stderr)
        raise SystemExit(143) from None


def _say_notes(comparison: Any) -> None:
    """Once, before the runs begin; of the processes of a run the first one says it."""
    if os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")) == "0":
        with plainly():
            for note in comparison.kind.notes(comparison.config, comparison.data):
                print(f"lff: {note}", file=sys.stderr)


def report(folder: Annotated[Path, tyro.conf.Positional], against: str | None = None) -> None:
    """Makes the tables, figures and report.html of a comparison again, from its run records.

    Args:
        folder: the --out of `lff compare`.
        against: the method that the others are compared with; by default what the host comes with.
    """
    from lff.experiments import report as reporting

    with plainly():
        page = reporting.write(folder, against)
        print(reporting.table(folder, against))
    print(f"The report is {page}")


def figures(
    folders: Annotated[tuple[Path, ...], tyro.conf.Positional] = (),
    out: Path | None = None,
    table: Path | None = None,
    screens: Path | None = None,
) -> None:
    """Makes the figures of the paper again that the runs of comparisons allow, by its numbers, and lists what the others need.

    Args:
        folders: each the --out of `lff compare`; without any, the figures that need no runs.
        out: folder for the pictures; by default `figures` in the first folder, or here.
        table: a model's safetensors with a table of positions in a row, for Figure 1.
        screens: folder of a captioning data set, for Figures 4 and 16; by default the one that ships with the package.
    """
    from lff.experiments import figures as drawing

    with plainly():
        target = out or Path(folders[0] if folders else ".") / "figures"
        print(drawing.listing(drawing.write(folders, target, table=table, screens=screens)))


def bench(
    out: Path | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    only: tuple[str, ...] = (),
    csv: Path | None = None,
) -> None:
    """Measures ratios of speed, memory and error in one run, on the device that is there.

    Args:
        out: file to keep the record in, as JSON.
        device: where to measure.
        only: some of what is measured: large, grid, boxes, error, reformer, captioner, detr, detection, vit; on a CPU grid,
            points, error, vit.
        csv: file to append the rows to.
    """
    from lff.experiments import bench as benching

    benching.main(out, device, only=only, csv=csv)


def explore(
    folder: Annotated[Path | None, tyro.conf.Positional] = None,
    export: Path | None = None,
    port: int = 0,
    open: bool = False,
) -> None:
    """Serves a page of similarity maps, to this machine alone: encodings at the start, and those that runs have trained.

    Args:
        folder: the --out of `lff compare`, or what `save_pretrained` wrote; without one the page has no trained encodings.
        export: write the page into this folder instead, to be opened from disk or put on any web server.
        port: to serve at; 0 takes a free one.
        open: open the page in a browser.
    """
    from lff.experiments import explore as exploring

    with plainly():
        runs, notes = exploring.collect(folder)
    for note in notes:
        print(f"lff: {note}", file=sys.stderr)
    if export is not None:
        print(f"The page is {exploring.export(runs, export)}")
        if folder is not None and export.resolve() == (folder / exploring.BESIDE).parent.resolve():
            print(f"`lff report {folder}` links the runs of the report to it")
        return
    with plainly():
        server = exploring.Server(exploring.files(runs), port)
    exploring.run(server, open=open)


def params() -> None:
    """Parameter counts of the encodings beside the paper's."""
    from lff.experiments.params import page

    print(page(), end="")


def placeholder(command: type) -> Any:
    """For `lff --help`, which lists the commands; `run` reads the options of these two."""

    def listed() -> None:
        raise AssertionError

    listed.__doc__ = command.__doc__
    return listed


def _parse(command: str, name: str, rest: list[str]) -> tuple[Any, str, Any, Any]:
    """The options of a command, those of the preset's config among them."""
    kind = find(name)
    preset = _option(rest, "--preset") or "demo"
    if preset not in kind.presets:
        near = difflib.get_close_matches(preset, kind.presets, n=1, cutoff=0.0)[0]
        raise Problem(f"there is no preset {preset!r} of {name}; perhaps you meant {near!r}. There are {', '.join(kind.presets)}")
    default = kind.presets[preset]()
    shape: Any = type(default)
    own: Any = Compare if command == "compare" else Train
    if command == "train":  # which methods and seeds is said by --method and --seed
        hidden = [(key, Annotated[Any, tyro.conf.Suppress], getattr(default, key)) for key in ("methods", "seeds")]
        shape = dataclasses.make_dataclass(shape.__name__, hidden, bases=(shape,), frozen=True)
        default = shape(**dataclasses.asdict(default))
    whole = dataclasses.make_dataclass(
        own.__name__, [("config", Annotated[shape, tyro.conf.arg(name="")], default)], bases=(own,), frozen=True, kw_only=True
    )
    whole.__doc__ = own.__doc__
    given: Any = tyro.cli(whole, prog=f"lff {command} {name}", args=rest)
    settings = {field.name: getattr(given.config, field.name) for field in dataclasses.fields(given.config)}
    if command == "train":
        settings["methods"] = (given.method,)
    return given, preset, type(kind.presets[preset]())(**settings), kind


def find(name: str) -> Any:
    """The class of a task: one of ours, or `my_module:MyTask`."""
    module, colon, attribute = (TASKS.get(name) or name).partition(":")
    if not colon:
        near = difflib.get_close_matches(name, TASKS, n=1, cutoff=0.0)[0]
        raise Problem(f"there is no task {name!r}; perhaps you meant {near!r}. One of your own is written my_module:MyTask")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a module in the present folder, as `python -m` would find it
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name and name in TASKS:
            raise Problem(f"the task {name} needs {error.name}: pip install 'lff[experiments,hosts]'") from error
        raise Problem(f"there is no module {error.name!r} for the task {name!r}") from error
    except AttributeError as error:
        raise Problem(f"the module {module!r} has no {attribute!r}") from error


def _option(rest: list[str], name: str) -> str | None:
    """The value of an option, before the options are parsed that depend on it."""
    for at, word in enumerate(rest):
        if word == name and at + 1 < len(rest):
            return rest[at + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None
