"""All measures, not the primary one alone: against the default with the paper's kind of test, and beside published numbers."""

from lff.experiments.report.findings import Findings
from lff.experiments.report.tables import DASH, Cell, Column, Table, number, p_value, spread
from lff.experiments.statistics import ALPHA, welch


def tests(findings: Findings) -> Table | None:
    """The difference of every mean to the default's with p of Welch's t-test; None where nothing can be tested."""
    comparison = findings.comparison
    measures = [measure for measure in comparison.measures if comparison.values(comparison.default, measure.key)]
    others = [row.method for row in findings.rows if row.method != comparison.default and row.finished]
    if len(measures) < 2 or not others:
        return None
    rows, any_p = [], False
    for method in others:
        cells = [Cell(method, mark=findings.colour(method))]
        for measure in measures:
            ours, theirs = (list(comparison.values(m, measure.key).values()) for m in (method, comparison.default))
            p = welch(ours, theirs) if ours else None
            any_p = any_p or p is not None
            by = number(measure, sum(ours) / len(ours) - sum(theirs) / len(theirs), sign=True) if ours else DASH
            cells.append(Cell(f"{by} ({p_value(p)})", bold=p is not None and p < ALPHA))
        rows.append(cells)
    columns = [Column("Method", words=True), *(Column(measure.label) for measure in measures)]
    caption = f"Difference to {comparison.default} (p of Welch's t-test over the seeds, not corrected); p below 0.05 in bold"
    return Table(caption, columns, rows) if any_p else None


def published(findings: Findings) -> Table | None:
    """Means beside the published numbers of the same row; None where the task has none."""
    paper = findings.comparison.about.get("paper") or {}
    there = [row for row in findings.rows if row.method in paper and row.finished]
    measures = [m for m in findings.comparison.measures if any(m.key in paper[row.method] for row in there)]
    if not there:
        return None
    columns = [Column("Method", words=True)]
    columns += [Column(label) for measure in measures for label in (f"{measure.label}, here", f"{measure.label}, paper")]
    rows = []
    for row in there:
        cells = [Cell(row.method, mark=findings.colour(row.method))]
        for measure in measures:
            value = paper[row.method].get(measure.key)
            cells += [Cell(spread(measure, row.measures[measure.key])), Cell(DASH if value is None else number(measure, value))]
        rows.append(cells)
    return Table("Means over seeds ± half of the 95 % interval, beside the paper's numbers", columns, rows)
