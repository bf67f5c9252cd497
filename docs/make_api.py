"""Writes docs/api.md from the docstrings: every public name of `lff`, in the order of its own list.

python docs/make_api.py
"""

from pathlib import Path

import griffe

PAGE = Path(__file__).with_name("api.md")
SOURCE = Path(__file__).parent.parent / "src"
CHAPTERS = {
    "lff.encodings.fourier": "Learnable Fourier features",
    "lff.encodings.modulated": "What comes after features",
    "lff.encodings.groups": "Groups and flattened grids",
    "lff.encodings.sinusoidal": "Sines",
    "lff.encodings.embedding": "Tables",
    "lff.encodings.mlp": "The MLP alone",
    "lff.encodings.zero": "None",
    "lff.encodings": "The paper's row names",
    "lff.encodings.regularizer": "The regulariser",
    "lff.positions": "Positions",
    "lff.adapters": "Adapters",
    "lff.adapters.fit": "Fitting a table",
    "lff.adapters.legacy": "Weights of other implementations",
    "lff.encodings.encoding": "What every encoding is",
}


def page() -> str:
    """The whole page."""
    package = griffe.load("lff", search_paths=[SOURCE], docstring_parser="google")
    public = [package[name] for name in package.members if package[name].is_alias]
    parts = ["# API", "Every public name of `lff`, made from the docstrings by `make docs`."]
    for module, title in CHAPTERS.items():
        members = [alias for alias in public if alias.final_target.module.path == module]
        parts += [f"## {title}", *(text for member in members for text in entry(member))]
    known = {alias.name for alias in public if alias.final_target.module.path in CHAPTERS}
    if missing := {alias.name for alias in public} - known:
        raise SystemExit(f"docs/make_api.py: no chapter for {', '.join(sorted(missing))}")
    return "\n\n".join(parts) + "\n"


def entry(alias: griffe.Alias) -> list[str]:
    """A heading, how it is called, and what its docstring says."""
    target = alias.final_target
    heading = f"### `lff.{alias.name}`"
    if isinstance(target, griffe.Attribute):
        names = [str(key).strip("'") for key in target.value.keys]
        return [heading, "Every row name, to its constructor:", "\n".join(f"- `{name}`" for name in names)]
    return [heading, f"```text\n{signature(alias.name, target)}\n```", *docstring(target)]


def signature(name: str, target: griffe.Object) -> str:
    """The call with its defaults; types are in the source, shapes are stated in words."""
    words, keyword_only = [], False
    for parameter in target.parameters:
        if parameter.name == "self":
            continue
        if parameter.kind is griffe.ParameterKind.keyword_only and not keyword_only:
            words.append("*")
            keyword_only = True
        stars = "**" if parameter.kind is griffe.ParameterKind.var_keyword else ""
        default = "" if parameter.default is None or stars else f"={parameter.default}"
        words.append(f"{stars}{parameter.name}{default}")
    return f"{name}({', '.join(words)})"


def docstring(target: griffe.Object) -> list[str]:
    """The text, and the arguments as a list."""
    parts = []
    for section in target.docstring.parsed if target.docstring else []:
        if section.kind is griffe.DocstringSectionKind.text:
            parts.append(section.value)
        elif section.kind is griffe.DocstringSectionKind.parameters:
            parts.append("\n".join(f"- `{item.name}`: {' '.join(item.description.split())}" for item in section.value))
    return parts


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
