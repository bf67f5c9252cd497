"""Tables: one structure, and how it is written as Markdown, as CSV and as HTML."""

import csv as csv_format
import html as html_format
import io
import math
import re
from dataclasses import dataclass

from lff.experiments.measures import Measure
from lff.experiments.report.elements import unbroken
from lff.experiments.report.findings import Finding, Findings
from lff.experiments.statistics import Estimate

DASH = "–"


@dataclass(frozen=True)
class Column:
    """A heading, the names of the numbers that CSV has in place of a cell's text, and whether it holds words, set to the left."""

    label: str
    fields: tuple[str, ...] = ()
    words: bool = False


@dataclass(frozen=True)
class Cell:
    """A text, the numbers behind it, and whether it is the best; `mark` is the number of a colour to stand beside it."""

    text: str
    numbers: tuple[object, ...] = ()
    bold: bool = False
    mark: int | None = None


@dataclass(frozen=True)
class Table:
    """The first cell of a row names it."""

    caption: str
    columns: list[Column]
    rows: list[list[Cell]]


def markdown(table: Table) -> str:
    """A pipe table with aligned columns."""
    lines = [[plain(column.label) for column in table.columns]]
    lines += [[f"**{plain(cell.text)}**" if cell.bold else plain(cell.text) for cell in row] for row in table.rows]
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(table.columns))]
    words = [column.words for column in table.columns]
    aligned = [[cell.ljust(n) if w else cell.rjust(n) for cell, n, w in zip(line, widths, words, strict=True)] for line in lines]
    rule = ["-" * n if w else "-" * (n - 1) + ":" for n, w in zip(widths, words, strict=True)]
    return "".join(f"| {' | '.join(line)} |\n" for line in [aligned[0], rule, *aligned[1:]])


def csv(table: Table) -> str:
    """Numbers as they are, unrounded and unscaled, empty where there is none."""
    out = io.StringIO()
    writer = csv_format.writer(out, lineterminator="\n")
    writer.writerow([name for column in table.columns for name in column.fields])
    for row in table.rows:
        writer.writerow(["" if number is None else number for cell in row for number in cell.numbers])
    return out.getvalue()


def html(table: Table) -> str:
    """A table with a caption and row headers, inside a box that scrolls."""
    label = html_format.escape(table.caption)
    head = "".join(f'<th scope="col"{_class(column, heading=True)}>{unbroken(column.label)}</th>' for column in table.columns)
    body = "\n".join(f"<tr>{''.join(map(_cell, row, table.columns, [True] + [False] * len(row)))}</tr>" for row in table.rows)
    return (
        f'<div class="scroll" role="region" aria-label="{label}" tabindex="0"><table>\n'
        f"<caption><span>{unbroken(table.caption)}</span></caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _cell(cell: Cell, column: Column, first: bool) -> str:
    swatch = "" if cell.mark is None else f'<span class="swatch" style="background: var(--m{cell.mark})"></span>'
    text = html_format.escape(cell.text)
    inner = swatch + (f"<strong>{text}</strong>" if cell.bold else text)
    return f'<th scope="row"{_class(column)}>{inner}</th>' if first else f"<td{_class(column)}>{inner}</td>"


def _class(column: Column, *, heading: bool = False) -> str:
    short = heading and len(column.label) < 13  # not to be broken, at the hyphen of Top-5 for instance
    names = " ".join(name for name, has in (("words", column.words), ("short", short)) if has)
    return f' class="{names}"' if names else ""


def plain(text: str) -> str:
    """Text that Markdown leaves as it is, escaped only where it would not: this is read in terminals too."""
    text = re.sub(r"<(?=[A-Za-z/!?])|&(?=#?\w+;)|[\\*_`|\[\]]", r"\\\g<0>", text)
    return text.replace("\n", " ")


def number(measure: Measure, value: float, *, sign: bool = False) -> str:
    """A value of a measure as it is printed, with a real minus sign."""
    if not math.isfinite(value):
        return "nan"
    text = f"{value * measure.scale:{'+' if sign else ''}.{measure.digits}f}"
    return text.replace("-", "−")


def spread(measure: Measure, found: Estimate | None, *, sign: bool = False) -> str:
    """Mean ± half interval, or what there is of them."""
    if found is None:
        return DASH
    mean = number(measure, found.mean, sign=sign)
    return mean if found.half is None else f"{mean} ± {number(measure, found.half)}"


def p_value(p: float | None) -> str:
    """Three decimals."""
    return DASH if p is None else "< 0.001" if p < 0.0005 else f"{p:.3f}"


def main(findings: Findings) -> Table:
    """Every method with its measures, its difference to the default, and what it costs."""
    comparison, primary = findings.comparison, findings.primary
    reach = "a level" if findings.level is None else f"{primary.name} {number(primary, findings.level)}"
    columns = [
        Column("Method", ("method",), words=True),
        *(Column(f"{m.label} {'↑' if m.larger else '↓'}", (m.key, f"{m.key}_half_interval")) for m in comparison.measures),
        Column(f"Difference to {comparison.default}", ("difference", "difference_half_interval")),
        Column("p (paired, Holm)", ("p_paired_holm",)),
        Column("p (Welch)", ("p_welch",)),
        Column(f"Steps to {reach}", ("steps_to_level", "runs_that_reach_level")),
        Column("Parameters of the encoding", ("encoding_parameters",)),
        Column("Relative speed", ("relative_speed",)),
        Column("Runs finished", ("runs_finished", "runs_planned")),
    ]
    best = findings.best()
    rows = [_main_row(findings, row, row.method in best) for row in findings.rows]
    return Table(f"Means over seeds ± half of the 95 % interval; best {primary.name} in bold", columns, rows)


def _main_row(findings: Findings, row: Finding, best: bool) -> list[Cell]:
    comparison, primary, by = findings.comparison, findings.primary, row.difference
    name = f"{row.method} ({comparison.role})" if row.method == comparison.default else row.method
    found = by.estimate if by else None
    reached = [step for step in row.steps if step is not None]
    mean = sum(reached) / len(reached) if reached and len(reached) == len(row.steps) else None
    if mean is not None:
        steps = f"{mean:,.0f}"
    else:
        steps = DASH if not row.steps else f"{len(reached)} of {len(row.steps)} runs" if reached else "not reached"
    return [
        Cell(name, (row.method,), mark=findings.colour(row.method)),
        *(
            Cell(spread(m, row.measures[m.key]), _numbers(row.measures[m.key]), bold=best and m.key == primary.key)
            for m in comparison.measures
        ),
        Cell(spread(primary, found, sign=True), _numbers(found)),
        Cell(p_value(by.holm if by else None), (by.holm if by else None,)),
        Cell(p_value(by.welch if by else None), (by.welch if by else None,)),
        Cell(steps, (mean, len(reached))),
        Cell(DASH if row.parameters is None else f"{row.parameters:,}", (row.parameters,)),
        Cell(DASH if row.speed is None else f"{row.speed:.2f}×", (row.speed,)),
        Cell(f"{row.finished} of {len(comparison.seeds)}", (row.finished, len(comparison.seeds))),
    ]


def _numbers(found: Estimate | None) -> tuple[object, ...]:
    return (None, None) if found is None else (found.mean, found.half)


def sizes(findings: Findings) -> Table:
    """The primary measure at each image size, for every method and way of asking for a size that was not trained."""
    primary = findings.primary
    scales = sorted({scale for size in findings.sizes for scale in size.at})
    best = {scale: primary.best([size.at[scale].mean for size in findings.sizes if scale in size.at]) for scale in scales}
    columns = [Column("Method", words=True), Column("Asked", words=True), *(Column(f"{scale:g}×") for scale in scales)]
    rows = [
        [
            Cell(size.method, mark=findings.colour(size.method)),
            Cell(size.asked),
            *(
                Cell(spread(primary, size.at.get(scale)), bold=scale in size.at and size.at[scale].mean == best[scale])
                for scale in scales
            ),
        ]
        for size in findings.sizes
    ]
    return Table(f"{primary.label} at image sizes relative to the trained one; best of each in bold", columns, rows)
