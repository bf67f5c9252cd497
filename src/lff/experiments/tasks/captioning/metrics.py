"""Caption metrics, by the published implementations of coco-caption (pycocoevalcap).

All are given the same tokens: `caption_words` of the reference, and the words that the model said. BLEU, ROUGE-L and CIDEr are
plain Python. METEOR and SPICE are Java programs that pycocoevalcap starts; where they cannot be run their value is None, which
a table shows as an empty cell.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

References = Sequence[Sequence[str]]

#: SPICE's cache reaches into these, which Java since 16 does not allow unasked.
_OPENED = ("java.lang", "java.math", "java.net", "java.nio", "java.text", "java.util", "java.util.concurrent")


def cider(said: Sequence[str], references: References) -> Float[np.ndarray, " n"]:
    """CIDEr-D of every caption, with document frequencies of all the references given; the corpus has their mean.

    The paper's numbers for seen and unseen positions, weighted by how many there are of each, give its CIDEr of all to a tenth:
    they are means of such values, not scores of two corpora of their own.
    """
    from pycocoevalcap.cider.cider import Cider  # type: ignore[import-untyped]

    _, each = Cider().compute_score(*_keyed(said, references))
    return np.asarray(each, dtype=np.float64)


def scores(said: Sequence[str], references: References) -> dict[str, float]:
    """BLEU-1, BLEU-2 and ROUGE-L of a corpus."""
    from pycocoevalcap.bleu.bleu import Bleu  # type: ignore[import-untyped]
    from pycocoevalcap.rouge.rouge import Rouge  # type: ignore[import-untyped]

    wanted, found = _keyed(said, references)
    (bleu_1, bleu_2, *_), _ = Bleu(4).compute_score(wanted, found, verbose=0)
    rouge, _ = Rouge().compute_score(wanted, found)
    return {"bleu1": float(bleu_1), "bleu2": float(bleu_2), "rouge": float(rouge)}


class Meteor:
    """METEOR 1.5; one Java process for many corpora. Use it in a `with`."""

    def __enter__(self) -> "Meteor":
        from pycocoevalcap.meteor.meteor import Meteor as Published  # type: ignore[import-untyped]

        self._published: Any = Published()
        return self

    def __call__(self, said: Sequence[str], references: References) -> float:
        score, _ = self._published.compute_score(*_keyed(said, references))
        return float(score)

    def __exit__(self, *error: object) -> None:
        process = self._published.meteor_p
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()
        process.kill()
        process.wait()
        self._published.meteor_p = _Gone()


class _Gone:
    """What pycocoevalcap's object closes once more when it is collected."""

    def __init__(self) -> None:
        self.stdin = self

    def close(self) -> None: ...

    def kill(self) -> None: ...

    def wait(self) -> None: ...


def spice(said: Sequence[str], references: References) -> float:
    """SPICE 1.0, as a process of its own: its licence is the AGPL. Only where `without` has nothing to say of it."""
    home = _package() / "spice"
    wanted, found = _keyed(said, references)
    rows = [{"image_id": key, "test": found[key][0], "refs": wanted[key]} for key in wanted]
    with tempfile.TemporaryDirectory() as folder:
        given, out, cache = (Path(folder) / name for name in ("given.json", "out.json", "cache"))
        given.write_text(json.dumps(rows))
        cache.mkdir()
        opened = [word for package in _OPENED for word in ("--add-opens", f"java.base/{package}=ALL-UNNAMED")]
        jars = os.pathsep.join(["spice-1.0.jar", "lib/*", *map(str, Path("/usr/share/java").glob("*rhino*.jar"))])
        command = ["java", "-Xmx8G", *opened, "-cp", jars, "edu.anu.spice.SpiceScorer", str(given)]
        subprocess.run([*command, "-cache", str(cache), "-out", str(out), "-silent"], cwd=home, check=True)
        return float(np.mean([row["scores"]["All"]["f"] for row in json.loads(out.read_text())]))


def without() -> dict[str, str]:
    """Why METEOR and SPICE cannot be computed here, and what would enable them; nothing for those that can."""
    if importlib.util.find_spec("pycocoevalcap") is None:
        why = "pip install 'lff[experiments]' brings pycocoevalcap, which is not here"
        return {"meteor": f"METEOR is not computed: {why}", "spice": f"SPICE is not computed: {why}"}
    home, found = _package(), {}
    again = "then `lff score FOLDER` adds it to finished runs"
    for key, name, jar in (("meteor", "METEOR", "meteor/meteor-1.5.jar"), ("spice", "SPICE", "spice/spice-1.0.jar")):
        if shutil.which("java") is None:
            found[key] = f"{name} is not computed: it needs a Java runtime, `apt-get install default-jre-headless`; {again}"
        elif not (home / jar).exists():
            found[key] = (
                f"{name} is not computed: {home / jar} is missing, `pip install --force-reinstall pycocoevalcap`; {again}"
            )
    if "spice" not in found and not (home / "spice/lib/stanford-corenlp-3.6.0-models.jar").exists():
        download = "python -c 'from pycocoevalcap.spice.get_stanford_models import get_stanford_models as get; get()'"
        found["spice"] = f"SPICE is not computed: it needs the models of Stanford CoreNLP 3.6.0, `{download}`; {again}"
    return found


def _package() -> Path:
    """Where pycocoevalcap is, which is a package without a file of its own."""
    spec = importlib.util.find_spec("pycocoevalcap")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations)))


def _keyed(said: Sequence[str], references: References) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    """As pycocoevalcap wants them: the references and the captions, by number."""
    if len(said) != len(references):
        raise ValueError(f"as many captions as widgets are wanted, {len(references)}, got {len(said)}")
    return {n: list(each) for n, each in enumerate(references)}, {n: [each] for n, each in enumerate(said)}
