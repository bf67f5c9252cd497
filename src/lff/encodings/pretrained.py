"""An encoding on disk, as the hub's mixin lays it out: weights in `model.safetensors`, what made it in `config.json`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file

if TYPE_CHECKING:
    from lff.encodings.encoding import Encoding

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def save(encoding: "Encoding", directory: str | Path) -> None:
    """Writes both files; the directory is made where it is missing."""
    path = Path(directory)
    path.mkdir(parents=True, exist_ok=True)
    config = {**_config(encoding), "dtype": str(encoding.like.dtype).removeprefix("torch.")}
    save_file({name: tensor.contiguous() for name, tensor in encoding.state_dict().items()}, path / WEIGHTS, {"format": "pt"})
    (path / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def load(cls: type["Encoding"], directory: str | Path) -> "Encoding":
    """Makes the encoding that `save` wrote; `cls` is the class that is expected, or a base of it."""
    path = Path(directory)
    for file in (path / CONFIG, path / WEIGHTS):
        if not file.is_file():
            raise ValueError(f"directory must hold {CONFIG} and {WEIGHTS}, as save_pretrained writes them; {file} is missing")
    try:
        config = json.loads((path / CONFIG).read_text(encoding="utf-8"))
        encoding = _make(config)
    except (json.JSONDecodeError, KeyError, TypeError) as broken:
        raise ValueError(f"{path / CONFIG} must be what save_pretrained writes, got one with {broken!r}") from broken
    if not isinstance(encoding, cls):
        raise ValueError(f"directory must hold a {cls.__name__}, got a {type(encoding).__name__}")
    encoding.to(getattr(torch, config.get("dtype", "float32")))
    encoding.load_state_dict(load_file(path / WEIGHTS))
    return encoding


def _config(encoding: "Encoding") -> dict[str, Any]:
    """The class and the arguments that make an encoding, those that are encodings themselves in the same form.

    `impl` is left out: the machine that loads it may have other kernels.
    """
    given = {name: _plain(value) for name, value in encoding.arguments.items() if name != "impl"}
    return {"class": type(encoding).__name__, "arguments": given}


def _plain(value: object) -> object:
    from lff.encodings.encoding import Encoding

    if isinstance(value, Encoding):
        return _config(value)
    if isinstance(value, tuple | list | torch.Size):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"arguments of an encoding must be numbers, strings or encodings to be saved, got {value!r}")


def _make(config: dict[str, Any]) -> "Encoding":
    """Only classes that this process has imported can be named, so a file from a stranger can start nothing else."""
    from lff.encodings.encoding import Encoding

    classes: dict[str, Any] = {cls.__name__: cls for cls in _subclasses(Encoding)}  # type: ignore[type-abstract]
    if config["class"] not in classes:
        raise ValueError(f"class must be one of {', '.join(sorted(classes))} or have been imported, got {config['class']!r}")
    arguments = {
        name: _make(value) if isinstance(value, dict) else tuple(value) if isinstance(value, list) else value
        for name, value in config["arguments"].items()
    }
    made: Encoding = classes[config["class"]](**arguments)
    return made


def _subclasses(cls: type["Encoding"]) -> list[type["Encoding"]]:
    direct = cls.__subclasses__()
    return direct + [deeper for sub in direct for deeper in _subclasses(sub)]
