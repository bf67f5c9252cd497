"""Where things are computed, and how tensors get there."""

import os

import torch
from torch import Tensor

from lff.experiments.problems import Problem


def find(name: str) -> torch.device:
    """What "auto", "cpu" or "cuda" is here."""
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise Problem("--device cuda wants a GPU that torch can use, and there is none here")
    return torch.device(("cuda" if there else "cpu") if name == "auto" else name)


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """To a device without waiting for it."""
    if device.type != "cuda":
        return tensor.to(device)
    return (tensor if tensor.is_pinned() else tensor.pin_memory()).to(device, non_blocking=True)


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
