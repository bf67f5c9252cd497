"""What the tests of the kernels share: where they can run, and Algorithm 1 in plain torch, which they must agree with."""

import os
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from lff import kernels
from lff.encodings.fourier import fourier_features

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic mode, which poisons memory, asks for it on a GPU

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
OBSTACLE = kernels.obstacle(torch.empty(0, device=DEVICE))

#: On a GPU, whoever leaves the choice to the library is told where torch computes, and many of these tests make it do so; and
#: torch says that its backward's thread had no context of CUDA's where that thread's first product is a backward's.
WARNINGS = ("the fused kernels are not used", "Attempting to run cuBLAS, but there was no current CUDA context")
#: Without the shape hook, which knows nothing of Triton's language.
runs_kernels = [
    pytest.mark.plain,
    *(pytest.mark.filterwarnings(f"ignore:{said}") for said in WARNINGS if DEVICE == "cuda"),
    pytest.mark.skipif(OBSTACLE is not None, reason=f"{OBSTACLE}; TRITON_INTERPRET=1 runs the kernels on a CPU"),
]


@pytest.fixture
def poisoned_memory():
    """Fills what `torch.empty` gives with nan, so that a place never written or a stray read shows."""
    torch.use_deterministic_algorithms(True)
    assert torch.utils.deterministic.fill_uninitialized_memory
    assert torch.empty(3, device=DEVICE).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


def off(output: Tensor, reference: Tensor) -> float:
    """Norm of the difference over the norm of the reference; 0 for two that are empty."""
    difference = (output.detach().double() - reference.detach()).norm().item()
    return difference and difference / reference.norm().item()


@dataclass
class Weights:
    """Random operands of one group of Algorithm 1; biases and LayerNorm far from 0 and 1, where a missing one would not show."""

    m: int
    features: int
    hidden: int
    depth: int
    bias: bool = False
    norm: bool = False
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        freqs = self.features // 2
        shapes = {"w_r": (freqs, self.m), "bias": (freqs,) if self.bias else None}
        shapes |= {
            "w_1": (self.hidden, self.features),
            "b_1": (self.hidden,),
            "w_2": (self.depth, self.hidden),
            "b_2": (self.depth,),
        }
        if self.norm:
            shapes |= dict.fromkeys(("g_1", "s_1"), (self.features,)) | dict.fromkeys(("g_2", "s_2"), (self.hidden,))
        scales = {"w_1": 0.7, "w_2": self.hidden**-0.5, "b_1": 0.5, "b_2": 0.5}
        for name, shape in shapes.items():
            if shape is not None:
                tensor = torch.randn(shape) * scales.get(name, 1.0) + name.startswith("g")
                self.tensors[name] = tensor.to(DEVICE).requires_grad_()

    def kernel(self, x: Tensor, **options) -> Tensor:
        t = self.tensors
        norms = {"norm_1": (t["g_1"], t["s_1"]), "norm_2": (t["g_2"], t["s_2"])} if self.norm else {}
        return kernels.fourier_mlp(x, t["w_r"], t.get("bias"), t["w_1"], t["b_1"], t["w_2"], t["b_2"], **norms, **options)

    def reference(self, x: Tensor, kept: Tensor | float = 1.0) -> Tensor:
        """The same in float64, with what dropout multiplies the hidden units by; gradients go to the same tensors."""
        t = {name: tensor.double() for name, tensor in self.tensors.items()}
        r = fourier_features(x.double(), t["w_r"], t.get("bias"))
        r = functional.layer_norm(r, r.shape[-1:], t["g_1"], t["s_1"]) if self.norm else r
        h = functional.gelu(functional.linear(r, t["w_1"], t["b_1"]))
        h = functional.layer_norm(h, h.shape[-1:], t["g_2"], t["s_2"]) if self.norm else h
        return functional.linear(h * kept, t["w_2"], t["b_2"])
