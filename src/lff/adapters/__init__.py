"""Encodings in the models people have: `swap` puts one in, `unswap` takes it out. On the instance, with no trace elsewhere."""

import importlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from safetensors.torch import load_file
from torch import nn

from lff import arguments
from lff.adapters.fit import fit as fit_encoding
from lff.adapters.grid import CLASS_TOKEN, UNSEEN
from lff.adapters.host import Options, Swapped
from lff.encodings.encoding import Encoding

#: The class that holds the positions of a host, to the module here that knows it.
HOSTS: dict[str, str] = {
    "transformers.models.vit.modeling_vit.ViTEmbeddings": "vision",
    "transformers.models.deit.modeling_deit.DeiTEmbeddings": "vision",
    "transformers.models.dinov2.modeling_dinov2.Dinov2Embeddings": "vision",
    "transformers.models.dinov2_with_registers.modeling_dinov2_with_registers.Dinov2WithRegistersEmbeddings": "vision",
    "transformers.models.clip.modeling_clip.CLIPVisionEmbeddings": "vision",
    "transformers.models.siglip.modeling_siglip.SiglipVisionEmbeddings": "vision",
    "transformers.models.detr.modeling_detr.DetrSinePositionEmbedding": "detr",
    "transformers.models.detr.modeling_detr.DetrLearnedPositionEmbedding": "detr",
    "transformers.models.conditional_detr.modeling_conditional_detr.ConditionalDetrSinePositionEmbedding": "detr",
    "transformers.models.conditional_detr.modeling_conditional_detr.ConditionalDetrLearnedPositionEmbedding": "detr",
    "transformers.models.deformable_detr.modeling_deformable_detr.DeformableDetrSinePositionEmbedding": "detr",
    "transformers.models.deformable_detr.modeling_deformable_detr.DeformableDetrLearnedPositionEmbedding": "detr",
    "transformers.models.rt_detr.modeling_rt_detr.RTDetrSinePositionEmbedding": "detr",
    "transformers.models.reformer.modeling_reformer.ReformerEmbeddings": "sequence",
    "transformers.models.bert.modeling_bert.BertEmbeddings": "sequence",
    "timm.models.vision_transformer.VisionTransformer": "timm_vision",
}

Model = TypeVar("Model", bound=nn.Module)


def swap(
    model: Model,
    encoding: Encoding,
    *,
    normalize: bool | None = None,
    class_token: str = "keep",
    unseen: str = "rescale",
    extent: Sequence[int] | None = None,
    fit: bool = False,
) -> Model:
    """Puts an encoding in place of a model's own, and returns the model: `lff.swap(model, lff.LearnableFourier(2, 768))`.

    Knows transformers' ViT, DeiT, DINOv2, CLIP's and SigLIP's vision towers, DETR and its kin, Reformer and BERT, and timm's
    VisionTransformer, also inside models with heads. The encoding follows the model's device and dtype. Afterwards pictures of
    any size go in, square or not, and nothing is interpolated.

    Args:
        model: changed in place; `lff.unswap` restores it.
        encoding: of (row, col), or of one coordinate for a sequence, with the depth of the model.
        normalize: give the encoding positions in (0, 1). By default as the host does it: patches and tokens are counted from 0,
            DETR's cells are normalised.
        class_token: "keep" keeps what the model's table adds to its class token and the like, as a parameter; "zero" adds
            nothing to them.
        unseen: for patches, at a size that was not trained: "rescale" asks inside the trained extent, "extend" beyond it,
            "interpolate" asks at the trained size and resizes that bicubically, for encodings that are tables.
        extent: for a sequence that is the raster of something, its size, (64, 64, 3) for an image; the encoding then takes as
            many coordinates.
        fit: make the encoding reproduce the model's own table first, so that a trained model goes on as it was; see `lff.fit`.
    """
    arguments.choice("class_token", class_token, CLASS_TOKEN)
    arguments.choice("unseen", unseen, UNSEEN)
    if any(isinstance(module, Swapped) for module in model.modules()):
        raise ValueError(
            f"model must hold its own encoding, got a {type(model).__name__} that is swapped already; lff.unswap it first"
        )
    name, adapter = _find(model)
    options = Options(normalize, class_token, unseen, extent)
    if fit:
        own = adapter.trained(model, name, options)
        if own.table.shape[-1] == encoding.depth and own.positions.shape[-1] == encoding.coords:  # or `put` says what is wrong
            left = fit_encoding(encoding.to(own.table.device), own.positions, own.table).error
            if left > 0.1:
                warnings.warn(f"the fit leaves {left:.2f} of the table; more hidden units bring it nearer", stacklevel=2)
    adapter.put(model, name, encoding, options)
    return model


def unswap(model: Model) -> Model:
    """Takes the encoding out again and puts back what the model had, with the values it had; returns the model."""
    for name, module in _swapped(model):
        parent, _, attribute = name.rpartition(".")
        module.undo(model.get_submodule(parent), attribute)
    return model


def load_swapped(model: Model, directory: str | Path) -> Model:
    """Loads what `save_pretrained` of a swapped transformers model wrote of its encoding; returns the model.

    The host's own loader knows the host's weights alone, so a swapped model comes back in three steps:
    `model = ViTModel.from_pretrained(directory)`, `lff.swap(model, encoding)`, `lff.load_swapped(model, directory)`.

    Args:
        model: swapped with an encoding like the one that was saved.
        directory: where it was saved, as safetensors in one file or several.
    """
    files = sorted(Path(directory).glob("*.safetensors"))
    if not files:
        raise ValueError(f"directory must hold the safetensors that save_pretrained writes, got {str(directory)!r} without any")
    saved = {key: tensor for file in files for key, tensor in load_file(file).items()}
    for name, module in _swapped(model):
        prefix = f"{name}." if name else ""
        prefix += "" if "encoding" in dict(module.named_children()) else "position."
        ours = {key.removeprefix(prefix): tensor for key, tensor in saved.items() if key.startswith(prefix)}
        model.get_submodule(prefix.rstrip(".")).load_state_dict(ours)
    return model


def _swapped(model: nn.Module) -> list[tuple[str, Any]]:
    swapped = [(name, module) for name, module in model.named_modules() if isinstance(module, Swapped)]
    if not swapped:
        raise ValueError(f"model must have been swapped by lff.swap, got a {type(model).__name__} that was not")
    return swapped


def _find(model: nn.Module) -> tuple[str, ModuleType]:
    """The name of the one module that holds the model's positions, and the adapter that knows it."""
    found = {name: host for name, module in model.named_modules() if (host := _host(module))}
    if not found:
        known = ", ".join(sorted({key.rpartition(".")[2] for key in HOSTS}))
        raise ValueError(
            f"model must contain one of {known}; got a {type(model).__name__}. "
            "A model of your own takes an encoding in three lines: docs/adapters.md"
        )
    if len(found) > 1:
        raise ValueError(
            f"model must contain one encoding, got {len(found)}: {', '.join(found)}; pass the submodule of the one you mean"
        )
    ((name, host),) = found.items()
    return name, importlib.import_module(f"lff.adapters.{HOSTS[host]}")


def _host(module: nn.Module) -> str | None:
    keys = (f"{cls.__module__}.{cls.__qualname__}" for cls in type(module).__mro__)
    return next((key for key in keys if key in HOSTS), None)
