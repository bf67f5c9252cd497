"""What `import lff` brings in, and which way imports inside the package point."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.plain


def test_the_library_loads_none_of_the_extras() -> None:
    extras = ("tyro", "transformers", "timm", "torchvision", "lightning_fabric", "matplotlib", "onnx", "scipy", "triton")
    code = f"import sys, lff; print([name for name in {extras} if name in sys.modules], 'torch._dynamo' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[] False"


def test_imports_point_one_way() -> None:
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    root = Path(__file__).parent.parent
    run = subprocess.run([sys.executable, "-c", code, "--no-cache"], cwd=root, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_public_names_are_those_of_the_design() -> None:
    import lff

    names = "LearnableFourier FourierFeatures Sine MultiDimSine Embed MLP Grouped Modulated build METHODS"
    names += " grid grid_from_mask boxes KLRegularizer swap unswap fit"
    assert [name for name in names.split() if not hasattr(lff, name)] == []


def test_the_numbers_of_analysis_load_none_of_the_extras() -> None:
    extras = ("tyro", "transformers", "timm", "torchvision", "lightning_fabric", "matplotlib", "scipy", "triton")
    code = f"import sys, lff.analysis; print([name for name in {extras} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
