"""The report as files: one page that needs nothing else, and the same tables as Markdown and CSV."""

import html
import os
import tempfile
from importlib.resources import files
from pathlib import Path
from string import Template

from lff.experiments.records import Comparison, read
from lff.experiments.report import details, elements, figures, links, measures, tables
from lff.experiments.report.findings import Findings, find
from lff.experiments.report.heatmaps import heat_maps
from lff.experiments.report.verdict import detectable, verdict

SEVERAL = 4  # curves that one figure shows well


def write(folder: str | Path, against: str | None = None) -> Path:
    """Writes report.html, report.md and report.csv into the folder of a comparison; returns the path of the page.

    A reader never sees half a file: each is written beside its place and then moved there.

    Args:
        folder: of the comparison.
        against: the method that the others are compared with; by default what the host comes with.
    """
    findings = find(read(folder, against))
    _replace(Path(folder) / "report.csv", tables.csv(tables.main(findings)))
    _replace(Path(folder) / "report.md", _markdown(findings))
    return _replace(Path(folder) / "report.html", _html(findings))


def table(folder: str | Path, against: str | None = None) -> str:
    """The main table in Markdown, and below it the smallest difference that could have been seen."""
    findings = find(read(folder, against))
    return f"{tables.markdown(tables.main(findings))}\n{detectable(findings)}\n"


def more_tables(folder: str | Path) -> str:
    """The tables of all measures in Markdown, each below what it is."""
    return "\n\n".join(f"{table.caption}:\n\n{tables.markdown(table).rstrip()}" for _, table in _more(find(read(folder))))


def sizes_table(folder: str | Path) -> str:
    """The table of image sizes in Markdown; empty where no other size was asked for."""
    findings = find(read(folder))
    return tables.markdown(tables.sizes(findings)) if findings.sizes else ""


def _replace(path: Path, text: str) -> Path:
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(beside).chmod(0o644)  # a temporary file is its owner's alone
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    return path


def _title(comparison: Comparison) -> str:
    preset = comparison.about.get("preset")
    return f"Positional encodings compared: {comparison.about['task']}" + (f", preset {preset}" if preset else "")


def _markdown(findings: Findings) -> str:
    comparison = findings.comparison
    parts = [
        f"# {tables.plain(_title(comparison))}",
        tables.plain(verdict(findings)),
        tables.markdown(tables.main(findings)).rstrip(),
    ]
    parts += [tables.plain(detectable(findings)), *map(tables.plain, details.notes(findings))]
    for title, more in _more(findings):
        parts += [f"## {title}", f"{more.caption}.", tables.markdown(more).rstrip()]
    if findings.sizes:
        parts += ["## Image sizes", tables.markdown(tables.sizes(findings)).rstrip()]
    if unfinished := details.unfinished(findings):
        parts += ["## Unfinished runs", "\n".join(f"- {tables.plain(line)}" for line in unfinished)]
    parts += [
        "## Environment",
        "\n".join(f"- {tables.plain(name)}: {tables.plain(value)}" for name, value in details.environment(comparison)),
    ]
    if command := comparison.about.get("command"):
        parts += ["## To repeat this", f"    {command}"]
    return "\n\n".join(parts) + "\n"


def _curves(findings: Findings) -> list[str]:
    """One figure of all curves; where the task says which belong together, one for each of these and one for the rest."""
    panels = {title: set(methods) for title, methods in findings.comparison.about.get("panels", {}).items()}
    methods = set(findings.comparison.methods)
    rest = methods - set().union(*panels.values())
    if len(methods) <= SEVERAL or not panels:
        panels, rest = {}, methods
    shown = {**panels, "Other methods": rest} if panels else {"": rest}
    drawn = {title: figures.curves(findings, f"-{i}", some) for i, (title, some) in enumerate(shown.items())}
    caption = details.curves_caption
    return [elements.figure(svg, caption(findings, title, shown[title])) for title, svg in drawn.items() if svg]


def _more(findings: Findings) -> list[tuple[str, tables.Table]]:
    """Tables of all measures, under their headings."""
    found = [("Every measure", measures.tests(findings)), ("Beside the paper", measures.published(findings))]
    return [(title, table) for title, table in found if table is not None]


def _html(findings: Findings) -> str:
    comparison = findings.comparison
    sizes, (pictures, without) = figures.sizes(findings), heat_maps(comparison)
    sections = [
        elements.section(
            "Results",
            tables.html(tables.main(findings)),
            elements.paragraph(detectable(findings)),
            elements.fold("How these numbers are made", elements.bullets(details.notes(findings))),
        ),
        *(elements.section(title, tables.html(more)) for title, more in _more(findings)),
        elements.section("Convergence", *curves) if (curves := _curves(findings)) else "",
        elements.section(
            "Image sizes",
            tables.html(tables.sizes(findings)),
            elements.figure(sizes, details.sizes_caption(findings)) if sizes else "",
        )
        if findings.sizes
        else "",
        elements.section(
            "What the encodings take for near",
            elements.paragraph(details.SIMILARITY),
            elements.gallery(pictures),
            *map(elements.paragraph, without),
            links.explored(comparison),
        )
        if pictures or without
        else "",
        elements.section("Unfinished runs", elements.bullets(details.unfinished(findings)))
        if details.unfinished(findings)
        else "",
        elements.section("Environment", elements.pairs(details.environment(comparison))),
        elements.section("Settings", elements.pairs(details.settings(comparison.about.get("config", {}))))
        if comparison.about.get("config")
        else "",
        elements.section("To repeat this", f"<pre><code>{html.escape(command)}</code></pre>")
        if (command := str(comparison.about.get("command", "")))
        else "",
    ]
    home = files("lff.experiments.report")
    finished = sum(row.finished for row in findings.rows)
    summary = [f"{len(comparison.methods)} methods", f"{len(comparison.seeds)} seeds", f"{finished} runs finished"]
    return Template(home.joinpath("report.html").read_text(encoding="utf-8")).substitute(
        title=html.escape(_title(comparison)),
        task=html.escape(str(comparison.about["task"])),
        preset=html.escape(f"preset {comparison.about['preset']}" if comparison.about.get("preset") else ""),
        summary=" · ".join(summary),
        style=home.joinpath("style.css").read_text(encoding="utf-8"),
        verdict=elements.unbroken(verdict(findings)),
        sections="\n".join(section for section in sections if section),
    )
