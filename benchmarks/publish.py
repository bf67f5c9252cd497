"""Brings records of other machines into results/, for the docs to show.

python benchmarks/publish.py runs/classification-mini classification-mini     # a comparison: results/classification-mini
python benchmarks/publish.py bench-cuda.json bench-cuda                       # a measurement: results/benchmarks/bench-cuda.json

Of every finished run its settings, its measures and what it ran on; of those with seed 0 the encoding as well, at the start and
trained, for pictures, unless it is a table of more than half a megabyte. No other weights, no logs, no report, which
`lff report results/NAME` makes again. A command names folders of the machine that it ran on: here they are DIR for the data, and
for what it wrote runs/NAME or the place in results/; runs that it read are in runs/. The rows of a `lff bench` are appended to
results/benchmarks.csv.
"""

import argparse
import json
import shlex
import shutil
from pathlib import Path

from lff.experiments.bench.record import append

ROOT = Path(__file__).parents[1]
KEPT = ("config.json", "environment.json", "metrics.jsonl")
PARTS = ("encoding-initial", "encoding-final")
COMMANDS = ("compare.json", "speed.json")
LARGEST = 2**19


def publish(source: Path, name: str, root: Path = ROOT) -> Path:
    """Writes results/NAME or results/benchmarks/NAME.json anew and gives its path; what is neither is refused."""
    if source.is_file():
        to = root / "results" / "benchmarks" / f"{name}.json"
        _copy(source, to, f"results/benchmarks/{name}.json")
        if name.startswith("bench-"):
            append(root / "results" / "benchmarks.csv", json.loads(to.read_text(encoding="utf-8")))
        return to
    out = f"runs/{name}"
    if not (source / "compare.json").exists():
        raise SystemExit(f"{source} must be the folder of a comparison, with compare.json")
    to = root / "results" / name
    new = to.with_name(f"{name}.new")
    shutil.rmtree(new, ignore_errors=True)
    for file in COMMANDS:
        if (source / file).exists():
            _copy(source / file, new / file, out)
    for run in sorted((source / "runs").iterdir()):
        if '"kind": "final"' not in (run / "metrics.jsonl").read_text(encoding="utf-8"):
            continue
        for file in KEPT:
            _copy(run / file, new / "runs" / run.name / file, out)
        for part in PARTS if run.name.endswith("--seed-0") else ():
            weights = run / "checkpoint" / part / "model.safetensors"
            if weights.exists() and weights.stat().st_size <= LARGEST:
                shutil.copytree(run / "checkpoint" / part, new / "runs" / run.name / "checkpoint" / part)
    for file in ("README.md",):  # written by hand
        if (to / file).exists():
            shutil.copy(to / file, new / file)
    shutil.rmtree(to, ignore_errors=True)
    return new.rename(to)


def _copy(file: Path, to: Path, out: str) -> None:
    """As it is, but for the folders in the command that a record says it came from."""
    to.parent.mkdir(parents=True, exist_ok=True)
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        record = json.loads(text)
        for said in (record, record.get("environment", {})):
            if "command" in said:
                text = text.replace(json.dumps(said["command"]), json.dumps(_of_a_reader(said["command"], out)))
    to.write_text(text, encoding="utf-8")


def _of_a_reader(command: str, out: str) -> str:
    words = shlex.split(command)
    for option, folder in (("--data", "DIR"), ("--weights", "FILE"), ("--out", out), ("--csv", "results/benchmarks.csv")):
        for i in (i + 1 for i, word in enumerate(words[:-1]) if word == option):
            words[i] = folder
    for i in (i + 1 for i, word in enumerate(words[:-1]) if word == "--runs"):
        words[i] = f"runs/{Path(words[i]).name}"
    return shlex.join(words)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Bring records of other machines into results/.")
    parser.add_argument("source", type=Path)
    parser.add_argument("name")
    arguments = parser.parse_args()
    print(publish(arguments.source, arguments.name))
