"""A row of a comparison: a method's name, and options in brackets where they are not the task's own."""

import ast
import difflib
import re
from typing import Any, NamedTuple

from lff.encodings import METHODS
from lff.experiments.problems import Problem


class Row(NamedTuple):
    """`Learnable-Fourier+MLP(gamma=4, kl=1.0)`, taken apart."""

    #: As it was written.
    label: str
    #: A key of `lff.METHODS`.
    name: str
    options: dict[str, Any]

    def without_loss(self) -> "Row":
        """What makes the encoding: all options but `kl`, which is of the training."""
        return self._replace(options={key: value for key, value in self.options.items() if key != "kl"})


def parse(label: str) -> Row:
    """Takes a row apart; a name that is not there is answered with the nearest that is."""
    name, options = label, {}
    if label not in METHODS and (match := re.fullmatch(r"(.+?)\(((?:\s*\w+\s*=.*)?)\)", label)):
        name, options = match[1].strip(), _options(label, match[2])
    if name not in METHODS:
        near = difflib.get_close_matches(name, METHODS, n=1, cutoff=0.0)[0]
        raise Problem(f"there is no method {name!r}; perhaps you meant {near!r}. All of them: {', '.join(METHODS)}")
    return Row(label, name, options)


def _options(label: str, text: str) -> dict[str, Any]:
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise Problem(f"options of a method must be written as in 'Learnable-Fourier+MLP(gamma=4)', got {label!r}") from error


def slug(label: str, seed: int) -> str:
    """The name of a run's folder."""
    return f"{re.sub(r'[^A-Za-z0-9.+=-]+', '_', label.replace('/', '-of-')).strip('_')}--seed-{seed}"
