import pytest

from lff.encodings import METHODS
from lff.experiments.methods import parse, slug
from lff.experiments.problems import Problem


@pytest.mark.parametrize("name", METHODS)
def test_every_row_name_stands_for_itself(name: str) -> None:
    assert parse(name).name == name
    assert parse(name).options == {}


def test_options_stand_in_brackets() -> None:
    row = parse("Learnable-Fourier+MLP(gamma=(1, 16), hidden=64, layer_norm=True)")
    assert row.name == "Learnable-Fourier+MLP"
    assert row.options == {"gamma": (1, 16), "hidden": 64, "layer_norm": True}
    assert parse("N(0, 4^-2)").name == "N(0, 4^-2)"


@pytest.mark.parametrize("text", ["Learnable-Fourier+MLP(gamma=)", "Learnable-Fourier+MLP(gamma=open('x'))"])
def test_options_that_are_no_values_are_refused(text: str) -> None:
    with pytest.raises(Problem, match="options of a method must be written"):
        parse(text)


def test_the_nearest_right_name_is_suggested() -> None:
    with pytest.raises(Problem, match=r"no method 'Learnable-Furier\+MLP'; perhaps you meant 'Learnable-Fourier\+MLP'"):
        parse("Learnable-Furier+MLP(gamma=2)")


def test_folder_names_are_safe_and_different() -> None:
    names = {slug(name, seed) for name in METHODS for seed in (0, 1)}
    assert len(names) == 2 * len(METHODS)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+=-_") for name in names)
