"""Puts the records of results/benchmarks into the docs, as tables between marker comments that bear a record's name.

    python benchmarks/tables.py            writes the tables
    python benchmarks/tables.py --check    writes nothing; exits 1 and names every file that differs from its records

The markers are `<!-- begin: precision-cpu -->` and `<!-- end: precision-cpu -->`; what lies between them belongs to this script.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RECORDS = Path("results/benchmarks")

_PRECISION = {
    "encoding": "Encoding",
    "package": "Package",
    "positions": "Positions (in the cast model)",
    "autocast": "bfloat16 autocast",
    "cast": "`.bfloat16()`",
    "medium": '"medium" float32',
}

_RESIZE = {
    "how": "Positions from",
    "error": "Fit error, %",
    "64x64": "64x64, trained",
    "48x48": "48x48",
    "80x80": "80x80",
    "96x96": "96x96",
    "128x128": "128x128",
    "64x96": "64x96",
}

#: Of every record that has a table: the fields of its rows that are shown, and their headings.
COLUMNS: dict[str, dict[str, str]] = {
    "precision-cpu": _PRECISION,
    "precision-cuda": _PRECISION,
    "initial-scale": {
        "extent": "Extent / gamma",
        "algorithm_1": "Algorithm 1",
        "layer_norm": "with LayerNorm",
    },
    "compat": {"version": "Version", "hosts": "Hosts where all four hold", "failing": "Otherwise"},
    "import-time": {
        "module": "Import",
        "seconds": "Seconds",
        "ratio": "Of `import torch`",
        "loads": "Of the heavy modules, loads",
    },
    "minilm": {
        "encoding": "Encoding",
        "parameters": "Parameters",
        "least": "Least error of the rank",
        "error": "Error of the fit",
        "seconds": "Seconds",
        "mean": "1 - cosine, mean",
        "worst": "1 - cosine, worst",
        "beyond": "Size behind the table",
        "halves_400": "Halves, 400 tokens",
        "halves_800": "Halves, 800 tokens",
    },
    "kernels-cuda": {
        "case": "Case",
        "kernel": "Kernel",
        "launches": "Launches a step",
        "microseconds": "Microseconds a step",
        "floor": "Byte floor",
        "ratio": "Over the floor",
    },
    "reformer-cuda": {
        "what": "Training step",
        "batch": "Pictures",
        "milliseconds": "ms",
        "pictures": "Pictures/s",
        "steps": "Steps/s",
        "faster": "Times as fast",
        "memory": "Peak memory, GiB",
        "paper": "Steps/s in the paper, 32 TPU cores",
    },
    "reformer-profile": {
        "what": "Training step",
        "total": "ms on the device",
        "calls": "Kernels",
        "products_share": "Matrix products",
        "sorting_share": "Sorting, gathering",
        "elementwise_share": "Elementwise, copies",
        "rest_share": "The rest",
    },
    "reformer-cost": {
        "gpus": "GPUs",
        "share": "Pictures a GPU",
        "from": "From the row",
        "step": "Seconds a step",
        "hours": "Hours a run",
        "days": "Days, 10 methods with 3 seeds",
    },
    "backbone-places": {
        "block": "Block",
        "channels": "Channels",
        "row": "Row",
        "column": "Column",
        "inside": "Inside a person",
    },
    "detection-floor": {
        "categories": "Categories",
        "ap50": "AP50, %",
        "ap": "AP, %",
        "best": "Best category (AP50, %)",
    },
    "detection-centres": {
        "method": "Method",
        "seeds": "Seeds",
        "column": "Column",
        "row": "Row",
        "width": "Width",
        "height": "Height",
    },
    "detection-head": {
        "seed": "Seed",
        "ap50": "AP50, %",
        "ap": "AP, %",
        "ap75": "AP75, %",
        "best": "Best category",
    },
    "roundness": {
        "encoding": "Encoding",
        "seeds": "Seeds",
        "falls": "Falls by half",
        "roundness": "Roundness",
        "range": "Least, greatest",
        "way": "Half-way to the least",
        "way_range": "Least, greatest",
    },
    "explore-pace": {
        "case": "64x64, 384 features, two maps",
        "rate": "Maps a second",
        "work": "Milliseconds of work a map, median",
        "slowest": "Slowest",
    },
    "resize-cpu": _RESIZE,
    "resize-cuda": _RESIZE,
}


#: Tables that show some rows of another record: its name, and the rows by their first column.
SELECTED: dict[str, tuple[str, list[str]]] = {
    "precision-summary": (
        "precision-cuda",
        [
            "Learnable-Fourier+MLP",
            "Sine-2D",
            "LearnableFourierPositionalEncoding",
            "PositionalEncoding1D",
            "build_sincos2d_pos_embed",
        ],
    )
}


#: Tables that are made from the record of benchmarks/reformer.py.
REFORMER = ("reformer-profile", "reformer-cost")

#: What the docs have a place for before it is measured: what stands there until then.
PENDING = dict.fromkeys(("reformer-cuda", *REFORMER), "Not measured yet: `python benchmarks/reformer.py`, on a GPU.") | {
    f"detection-{preset}": f"Not run yet: `lff compare detection --preset {preset} --data COCO`, on a GPU."
    for preset in ("mini", "mini-unseen", "mini-start")
}

#: Records of `lff bench`: their tables come with a picture beside the page, docs/NAME.png.
BENCHES = ("bench-cpu", "bench-cuda")

#: Their rows that have a bar, without those of eager mode that a CUDA graph repeats: the record that they are of.
BENCHES_BRIEF = {"bench-cpu-brief": "bench-cpu", "bench-cuda-brief": "bench-cuda"}

#: Comparisons of `lff compare` in results/, whose report's tables the docs show.
COMPARISONS = (
    "captioning-mini",
    "classification-demo",
    "classification-explore",
    "classification-impl",
    "classification-mini",
    "detection-demo",
    "detection-frequent",
    "detection-mini",
    "detection-mini-start",
    "detection-mini-unseen",
    "detection-pilot",
    "detection-pilot-unseen",
    "generation-demo",
    "generation-mini",
)

#: Those that are shown with every measure beside the paper's.
BESIDE = (
    "captioning-mini",
    "detection-mini",
    "detection-mini-start",
    "detection-mini-unseen",
    "detection-pilot",
    "detection-pilot-unseen",
)

#: Their methods against another than the host's default: the comparison and that method.
AGAINST = {
    "classification-mini-against-ours": ("classification-mini", "Learnable-Fourier+MLP"),
    "generation-mini-against-ours": ("generation-mini", "Learnable-Fourier+MLP"),
}

#: The first lines of a comparison, for who reads no further: the comparison, and the beginnings of the columns that are shown.
BRIEF = {
    "classification-mini-brief": ("classification-mini", ("Method", "Top-1", "Difference", "p (paired", "Parameters")),
    "captioning-mini-brief": (
        "captioning-mini",
        ("Method", "CIDEr ↑", "CIDEr of unseen", "Difference", "p (paired", "Parameters"),
    ),
    "generation-mini-brief": ("generation-mini-against-ours", ("Method", "Bits/dim", "Difference", "p (paired", "Parameters")),
}


def save(name: str, record: dict[str, Any], root: Path = ROOT) -> None:
    """Keeps what was measured, {"environment": ..., "rows": [...]}, and prints its table."""
    path = root / RECORDS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(markdown(name, record))


def markdown(name: str, record: dict[str, Any]) -> str:
    """A record as a table, and below it in small print how its numbers came about."""
    if name in (*COMPARISONS, *AGAINST):
        tables = "\n\n".join(record[part].rstrip() for part in ("table", "sizes", "more") if record[part])
        return f"{tables}\n\n{_small_print(record['environment'])}"
    if name in BRIEF:
        return f"{_columns(record['table'], BRIEF[name][1])}\n\n{_small_print(record['environment'])}"
    if name in BENCHES:
        from lff.experiments.bench.record import table

        picture = f"![The ratios below, each with its bar]({name}.png)"
        return f"{picture}\n\n{table(record['rows'])}\n\n{_small_print(record['environment'])}"
    if name in BENCHES_BRIEF:
        return f"{_brief(record['rows'])}\n\n{_small_print(record['environment'])}"
    columns = COLUMNS[SELECTED[name][0] if name in SELECTED else name]
    lines = [list(columns.values()), ["---"] * len(columns), *([_cell(row[key]) for key in columns] for row in record["rows"])]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{table}\n\n{_small_print(record['environment'])}"


def _brief(rows: list[dict[str, Any]]) -> str:
    """What was measured against a bar: a row each, of small cases on a GPU as CUDA graphs."""
    from lff.experiments.bench.record import table

    kept = [row for row in rows if row["bar"] is not None]
    graphs = {row["what"].removesuffix(", CUDA graph") for row in kept if row["what"].endswith(", CUDA graph")}
    lines = table([row for row in kept if row["what"].removesuffix(", eager") not in graphs])
    return _columns(lines, ("What", "Of", "Against", "Ratio", "Bar", "Verdict"))


def _columns(table: str, wanted: tuple[str, ...]) -> str:
    """Some columns of a Markdown table, by how their headings begin; what comes below the table is left out."""
    lines = [[c.strip() for c in re.split(r"(?<!\\)\|", line.strip("|"))] for line in table.splitlines() if line.startswith("|")]
    kept = [i for i, heading in enumerate(lines[0]) if heading.startswith(wanted)]
    return "\n".join(f"| {' | '.join(line[i] for i in kept)} |" for line in lines)


def _cell(value: object) -> str:
    """What a table shows for a value: three digits, lists with commas, a dash where there is none."""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    if isinstance(value, list):
        return ", ".join(map(_cell, value)) or "none"
    return "-" if value is None else str(value)


def _small_print(environment: dict[str, Any]) -> str:
    versions = ", ".join(f"{package} {version}" for package, version in environment["versions"].items())
    commit = environment["commit"][:13] or "unknown"  # 12 digits, and a "+" where the code had been changed
    return f"<sub>{environment['device']}; {versions}; commit {commit}; `{environment['command']}`</sub>"


def filled(text: str, records: dict[str, dict[str, Any]]) -> str:
    """A page with the table of every record between that record's markers; what is pending says so."""
    shown = PENDING | {name: markdown(name, record) for name, record in records.items()}
    for name, table in shown.items():
        block = f"<!-- begin: {name} -->\n\n{table}\n\n<!-- end: {name} -->"
        text = re.sub(f"<!-- begin: {name} -->.*?<!-- end: {name} -->", lambda _, block=block: block, text, flags=re.DOTALL)
    return text


def problems(root: Path = ROOT) -> list[str]:
    """Everything that keeps the docs from showing the records, a sentence each that begins with the file; none if all is well."""
    records = _records(root)
    found = [f"docs/{name}.png: shows another record; run python benchmarks/tables.py" for name in _undrawn(root, records)]
    for page in _pages(root):
        text, file = page.read_text(encoding="utf-8"), page.relative_to(root)
        for name in (*COLUMNS, *SELECTED, *BENCHES, *BENCHES_BRIEF, *COMPARISONS, *AGAINST, *BRIEF):
            begins, ends = text.count(f"<!-- begin: {name} -->"), text.count(f"<!-- end: {name} -->")
            if begins != ends:
                found.append(f"{file}: {begins} begin and {ends} end markers of {name}")
            elif begins and name not in records and name not in PENDING:
                found.append(f"{file}: there is no record {RECORDS / name}.json")
        if text != filled(text, records):
            found.append(f"{file}: differs from {RECORDS}; run python benchmarks/tables.py")
    return found


def write(root: Path = ROOT) -> None:
    """Brings every page up to date with the records there are."""
    records = _records(root)
    for page in _pages(root):
        text = page.read_text(encoding="utf-8")
        if (new := filled(text, records)) != text:
            page.write_text(new, encoding="utf-8")
    for name in _undrawn(root, records):
        from lff.experiments.bench.chart import draw

        draw(records[name], root / "docs" / f"{name}.png")


def _undrawn(root: Path, records: dict[str, dict[str, Any]]) -> list[str]:
    """Records of `lff bench` whose picture is missing or shows other numbers."""
    from lff.experiments.bench.chart import digest, digest_of

    return [n for n in BENCHES if n in records and digest_of(root / "docs" / f"{n}.png") != digest(records[n])]


def _records(root: Path) -> dict[str, dict[str, Any]]:
    paths = {name: root / RECORDS / f"{name}.json" for name in (*COLUMNS, *BENCHES)}
    records = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in paths.items() if path.exists()}
    records |= {name: _comparison(root / "results" / name) for name in COMPARISONS if (root / "results" / name).exists()}
    there = {name: (root / "results" / source, method) for name, (source, method) in AGAINST.items() if source in records}
    records |= {name: _comparison(folder, method) for name, (folder, method) in there.items()}
    records |= {name: records[source] for name, (source, _) in BRIEF.items() if source in records}
    records |= {name: records[source] for name, source in BENCHES_BRIEF.items() if source in records}
    records |= _reformer(records["reformer-cuda"]) if "reformer-cuda" in records else {}
    for name, (source, rows) in SELECTED.items():
        if source in records:
            first = next(iter(COLUMNS[source]))
            records[name] = {**records[source], "rows": [row for row in records[source]["rows"] if row[first] in rows]}
    return records


def _reformer(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    from lff.experiments.bench.cost import costs

    found = dict(zip(REFORMER, (record.get("profiles", []), costs(record["rows"])), strict=True))
    return {name: {"environment": record["environment"], "rows": rows} for name, rows in found.items() if rows}


def _comparison(folder: Path, against: str | None = None) -> dict[str, Any]:
    """Its tables; those of sizes only where nothing but the default is compared with."""
    from lff.experiments import records, report

    about = records.read(folder)
    environment = {**about.runs[0].environment, "command": about.about["command"]}
    sizes = report.sizes_table(folder) if against is None else ""
    more = report.more_tables(folder) if against is None and folder.name in BESIDE else ""
    return {"table": report.table(folder, against), "sizes": sizes, "more": more, "environment": environment}


def _pages(root: Path) -> list[Path]:
    return [page for page in (root / "README.md", *sorted((root / "docs").rglob("*.md"))) if page.exists()]


def main() -> None:
    parser = argparse.ArgumentParser(description="Put the tables of results/benchmarks into the docs.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file differs")
    if not parser.parse_args().check:
        write()
    if found := problems():
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
