"""Runs the four first tests of every host against other versions of transformers and timm, and writes down what each gave.

    python benchmarks/compat.py [transformers] [timm]        or `make compat`

Each version is installed into a folder of its own, in front of the environment's. A quarter of an hour on 2 cores.
"""

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path
from typing import Any

import tables

from lff.experiments.environment import environment

ROOT = Path(__file__).parent.parent
VERSIONS = {"transformers": ("4.57.6", "5.0.0", "5.8.0", "5.17.0", "5.22.2"), "timm": ("1.0.15", "1.0.20", "1.0.30")}
CLAIMS = ("changes_no_bit", "reaches_every_parameter", "twice_the_height", "what_it_was")


def install(package: str, version: str, folder: Path) -> None:
    """The package and what it needs at that version; torch stays the environment's."""
    alone = ["--no-deps"] if package == "timm" else []
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(folder), *alone]
    subprocess.run([*pip, f"{package}=={version}"], check=True)


def outcomes(package: str, folder: Path) -> dict[str, str]:
    """Of every host of that package: "yes" where all four claims hold, otherwise the first that does not, or why."""
    report = folder / "report.xml"
    hosts = "timm" if package == "timm" else "not timm"
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-W", "default", "-p", "no:cacheprovider", f"--junitxml={report}"),
            *("tests/adapters/test_hosts.py", "-k", f"({' or '.join(CLAIMS)}) and {hosts}"),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        check=False,
    )
    found: dict[str, list[str]] = defaultdict(list)
    if not report.exists():
        return {}
    for case in ElementTree.parse(report).iter("testcase"):
        host = case.get("name", "").partition("[")[2].rstrip("]")
        failure = next((tag.get("message", "") for kind in ("failure", "error") for tag in case.iter(kind)), None)
        if failure is not None:
            found[host].append(failure.splitlines()[0][:100])
        else:
            found[host] += []
    return {host: failures[0] if failures else "yes" for host, failures in sorted(found.items()) if host}


def kept(packages: list[str]) -> list[dict[str, Any]]:
    """The rows of the last record that belong to packages which are not run now, each with the commit it was made at."""
    path = ROOT / tables.RECORDS / "compat.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"rows": []}
    rows = [row for row in record["rows"] if row["version"].split()[0] not in packages]
    return [{"commit": record["environment"]["commit"], **row} for row in rows]


def main() -> None:
    packages = sys.argv[1:] or list(VERSIONS)
    rows = kept(packages)
    for package in packages:
        for version in VERSIONS[package]:
            with tempfile.TemporaryDirectory() as folder:
                install(package, version, Path(folder))
                hosts = outcomes(package, Path(folder))
            failing = [f"{host}: {why}" for host, why in hosts.items() if why != "yes"]
            held = f"{len(hosts) - len(failing)} of {len(hosts)}"
            print(f"{package} {version}: {held} hosts", flush=True)
            made = {"commit": environment()["commit"], "outcomes": hosts}
            rows.append({"version": f"{package} {version}", "hosts": held, "failing": failing, **made})
    tables.save("compat", {"environment": environment(), "rows": sorted(rows, key=lambda row: row["version"], reverse=True)})


if __name__ == "__main__":
    main()
