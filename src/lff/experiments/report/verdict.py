"""The findings in sentences: what may be said, and what may not."""

from lff.experiments.report.findings import Findings
from lff.experiments.report.tables import number, p_value, spread
from lff.experiments.statistics import Difference


def verdict(findings: Findings) -> str:
    """One paragraph: the best method, whether its difference to the default is significant, and what could have been seen."""
    return " ".join([*_best(findings), *_left_out(findings)])


def detectable(findings: Findings) -> str:
    """One sentence with the smallest difference that the paired test would find."""
    known = [difference for difference in findings.compared if difference.detectable is not None]
    seeds = sorted({len(difference.seeds) for difference in known or findings.compared})
    if not seeds:
        return "Smallest detectable difference: unknown, since no method is compared with the default."
    n = f"n = {seeds[0]}" if len(seeds) == 1 else f"n = {seeds[0]} to {seeds[-1]}"
    if findings.detectable is None:
        return f"Smallest detectable difference: unknown ({n}); it takes two seeds of both methods, and differences that vary."
    m = len(findings.compared)
    level = "0.05" if m == 1 else f"0.05 / {m}"
    median = "" if m == 1 else "the median over methods; "
    return (
        f"Smallest detectable difference: {_size(findings, findings.detectable)} "
        f"({median}paired t-test, {n} seeds, two-sided at {level}, power 80 %)."
    )


def _best(findings: Findings) -> list[str]:
    best, primary, default = findings.best(), findings.primary, findings.comparison.default
    if not best:
        return [f"No run has finished with a finite {primary.name}, so nothing can be said yet."]
    row = findings.row(best[0])
    found = row.measures[primary.key]
    unit = f" {primary.unit}" if primary.unit else ""
    high = "highest" if primary.larger else "lowest"
    if len(best) > 1:
        return [f"{_and(best)} tie for the {high} mean {primary.name}: {spread(primary, found)}{unit}.", *_others(findings)]
    who = f"{best[0]}, the default," if best[0] == default else best[0]
    said = [f"{who} has the {high} mean {primary.name}: {spread(primary, found)}{unit}."]
    if len([other for other in findings.rows if other.finished]) == 1:
        return [*said, "No other method has a finished run, so there is nothing to compare it with."]
    return said + (_others(findings) if best[0] == default else _against(findings, row.difference))


def _against(findings: Findings, by: Difference | None) -> list[str]:
    """The best method, which is not the default, against it."""
    default = findings.comparison.default
    if default not in findings.comparison.methods:
        return [f"The default, {default}, is not among the methods, so no difference to it can be tested."]
    if by is None or by.estimate is None:
        return [f"It shares no finished seed with the default, {default}, so the two cannot be compared."]
    if by.holm is None and len(by.seeds) == 1:
        step = _size(findings, abs(by.estimate.mean))
        return [
            f"That is {step} from the default, {default}, on a single seed: without a second, chance cannot be told from effect."
        ]
    if by.holm is None:
        return [f"Its difference to the default, {default}, cannot be tested, since the differences between seeds do not vary."]
    apart = f"Its difference to the default, {default}, is {spread(findings.primary, by.estimate, sign=True)}"
    m = len(findings.compared)
    after = f"after Holm's correction for {m} methods" if m > 1 else "with one method compared"
    test = f"over {len(by.seeds)} seeds, {'significant' if by.significant else 'not significant'} {after} (p {_equals(by.holm)})."
    if by.significant:
        return [f"{apart} {test}", *_limit(findings)]
    return [f"{apart} {test}", "These runs do not show that it is better.", *_limit(findings)]


def _others(findings: Findings) -> list[str]:
    """The default is best, or ties: what is known about the others."""
    tested = [row for row in findings.rows if row.difference and row.difference.holm is not None]
    if not tested:
        return ["No difference can be tested: that takes two seeds of both methods, and differences that vary."]
    apart = [row.method for row in tested if row.difference and row.difference.significant]
    after = "after Holm's correction" if len(findings.compared) > 1 else ""
    if not apart:
        nothing = f"No other method's difference to it is significant {after}".strip()
        return [f"{nothing}: these runs do not tell them apart.", *_limit(findings)]
    verb = "differs" if len(apart) == 1 else "differ"
    return [f"{_and(apart)} {verb} from it significantly {after}".strip() + ".", *_limit(findings)]


def _limit(findings: Findings) -> list[str]:
    if findings.detectable is None:
        return []
    found = f"finds true differences of {_size(findings, findings.detectable)} or more at least four times in five"
    return [f"A comparison with this spread and number of seeds {found}; smaller ones may go unseen."]


def _left_out(findings: Findings) -> list[str]:
    out, planned = len(findings.unfinished) + len(findings.missing), len(findings.comparison.runs) + len(findings.missing)
    diverged = [row.method for row in findings.rows if (m := row.measures[findings.primary.key]) and m.mean != m.mean]
    said = [f"Without a mean, since at least one run diverged: {_and(diverged)}."] if diverged else []
    if out:
        said.append(
            f"{out} of {planned} runs {'has' if out == 1 else 'have'} not finished and {'is' if out == 1 else 'are'} left out."
        )
    return said


def _size(findings: Findings, value: float) -> str:
    """A difference with its unit; percentages differ by points."""
    unit = {"%": " points", "": ""}.get(findings.primary.unit, f" {findings.primary.unit}")
    return number(findings.primary, value) + unit


def _equals(p: float) -> str:
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
