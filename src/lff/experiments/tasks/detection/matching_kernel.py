"""The assignment of least cost on the GPU: a step that it is part of never waits for the processor.

The Hungarian method with potentials, by shortest augmenting paths (Jonker and Volgenant, 1987), one program an image and layer.
Rows, of which there are fewer, are matched one after the other with columns: objects with queries, or queries with objects where
an image has more of those. In float64, as SciPy computes; where several assignments cost the same it may find another of them.
"""
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton compiles the functions that it decorates; no checker may wrap them.

from typing import no_type_check

import torch
import triton  # type: ignore[import-untyped]
import triton.language as tl  # type: ignore[import-untyped]
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from lff.kernels import serving

FREE = tl.constexpr(-1)


@triton.jit
@no_type_check
def _at(values, k, place):
    """values[place], for a place that the program decides."""
    return tl.sum(tl.where(k == place, values, 0), axis=0)


@triton.jit
@no_type_check
def _assign(costs, real, found, images, queries, objects, longest, BLOCK: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    costs += program * queries * objects
    found += program * objects
    k = tl.arange(0, BLOCK)
    there = tl.load(real + (program % images) * objects + k, mask=k < objects, other=0).to(tl.int32)
    turned = tl.sum(there, axis=0) > queries  # then queries are rows, and objects columns
    row_stride = tl.where(turned, objects, 1)
    column_stride = tl.where(turned, 1, objects)
    columns = tl.where(turned, there != 0, k < queries)
    rows = tl.where(turned, (k < queries).to(tl.int32), there)
    # By column: its potential, its row, and the potential of that row.
    potential = tl.zeros([BLOCK], tl.float64)
    owner = tl.full([BLOCK], FREE, tl.int32)
    owed = tl.zeros([BLOCK], tl.float64)
    for row in range(0, longest):
        if _at(rows, k, row) != 0:
            own = tl.zeros([1], tl.float64).sum(axis=0)  # the potential of this row
            shortest = tl.full([BLOCK], float("inf"), tl.float64)
            before = tl.full([BLOCK], FREE, tl.int32)
            used = tl.zeros([BLOCK], tl.int32)
            column = -1
            through = row
            level = own
            while through != FREE:
                cost = tl.load(costs + through * row_stride + k * column_stride, mask=columns, other=float("inf"))
                reduced = cost.to(tl.float64) - level - potential
                open_ = columns & (used == 0)
                nearer = open_ & (reduced < shortest)
                shortest = tl.where(nearer, reduced, shortest)
                before = tl.where(nearer, column, before)
                reach = tl.where(open_, shortest, float("inf"))
                step = tl.min(reach, axis=0)
                column = tl.argmin(reach, axis=0).to(tl.int32)
                potential = tl.where(used != 0, potential - step, potential)
                owed = tl.where(used != 0, owed + step, owed)
                own += step
                shortest = tl.where(open_, shortest - step, shortest)
                used = tl.where(k == column, 1, used)
                through = _at(owner, k, column)
                level = _at(owed, k, column)
            while column != FREE:  # every row of the path moves on by one column
                last = _at(before, k, column)
                new = tl.where(last == FREE, row, _at(owner, k, last))
                due = tl.where(last == FREE, own, _at(owed, k, last))
                owner = tl.where(k == column, new, owner)
                owed = tl.where(k == column, due, owed)
                column = last
    taken = columns & (owner != FREE)
    tl.store(found + tl.where(turned, k, owner), tl.where(turned, owner, k).to(tl.int64), mask=taken)


def assign(
    cost: Float[Tensor, "layers batch queries objects"], real: Bool[Tensor, "batch objects"]
) -> Int64[Tensor, "layers batch objects"]:
    """The query of every object, or -1; every cost is finite."""
    layers, images, queries, objects = cost.shape
    found = torch.full((layers, images, objects), -1, dtype=torch.int64, device=cost.device)
    longest = max(queries, objects)
    if found.numel():
        with serving.on(cost):
            _assign[(layers * images,)](
                cost.float().contiguous(),
                real.to(torch.uint8).contiguous(),
                found,
                images,
                queries,
                objects,
                longest,
                BLOCK=max(16, triton.next_power_of_2(longest)),
                num_warps=1,
            )
    return found
