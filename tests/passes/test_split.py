"""Elementwise operations on a joined fragment are done on its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flyllvm.expr as fx
from flyllvm.ir import types as t
from flyllvm.ir.core import Kernel
from tests.passes.kernels import b, copy_atom, ops, promoted, run


def loaded(A: fx.Tensor, parts: int = 4) -> Any:
    """A fragment of ``parts`` vectors of 4."""
    fragment = fx.make_rmem_tensor((4, parts), fx.Float32)
    fx.copy(copy_atom(fx.Float32, 128), fx.make_view(A.iter, fx.make_layout((4, parts), (1, 4))), fragment)
    return fragment


def widest(kernel: Kernel) -> int:
    return max(t.count_of(r.type) for op in kernel.walk() for r in op.results if isinstance(r.type, t.VectorType))


OPERATIONS = {
    "conversion": lambda x, y: x.to(fx.Float16).to(fx.Float32),
    "sum": lambda x, y: x + y,
    "with a number": lambda x, y: x * 3.0,
    "number first": lambda x, y: 3.0 - x,
    "negation": lambda x, y: -x,
    "chain": lambda x, y: (x + y) * (x - 2.0),
}


def kernel_of(operation: str) -> Any:
    def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor) -> None:
        x, y, z = loaded(A), loaded(B), fx.make_rmem_tensor((4, 4), fx.Float32)
        z.store(OPERATIONS[operation](x.load(), y.load()))
        fx.copy(copy_atom(fx.Float32, 128), z, fx.make_view(C.iter, fx.make_layout((4, 4), (1, 4))))

    return kernel


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_vector_is_wider_than_a_part(operation: str) -> None:
    kernel = promoted(kernel_of(operation), "f32[16]", "f32[16]", "f32[16]")
    assert widest(kernel) == 4
    assert ops(kernel, "vector.concat") == [] and ops(kernel, "vector.extract_strided_slice") == []


@pytest.mark.sim
@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_parts_give_what_the_whole_would(operation: str) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-8, 9, 16).astype(np.float32) for _ in range(2))
    results = []
    for ssa in (True, False):
        c = np.zeros(16, np.float32)
        run(kernel_of(operation), a, b, c, ssa=ssa)
        results.append(c)
    want = {"conversion": a, "sum": a + b, "with a number": 3 * a, "number first": 3 - a, "negation": -a,
            "chain": (a + b) * (a - 2)}  # fmt: skip
    np.testing.assert_array_equal(results[0], want[operation])
    np.testing.assert_array_equal(results[1], want[operation])


@pytest.mark.sim
def test_a_comparison_and_a_select_are_split_too() -> None:
    def kernel(A: fx.Tensor, C: fx.Tensor) -> None:
        x = loaded(A).load()
        zero = b().constant(0.0, t.VectorType(16, t.F32))
        cond = b().cmpf("olt", x.ir_value(), zero)
        fragment = fx.make_rmem_tensor((4, 4), fx.Float32)
        fragment.store(fx.Vector(b().select(cond, b().unary("arith.negf", x.ir_value()), x.ir_value()), fx.Float32))
        fx.copy(copy_atom(fx.Float32, 128), fragment, fx.make_view(C.iter, fx.make_layout((4, 4), (1, 4))))

    assert widest(promoted(kernel, "f32[16]", "f32[16]")) == 4
    a, c = np.arange(-8, 8, dtype=np.float32), np.zeros(16, np.float32)
    run(kernel, a, c)
    np.testing.assert_array_equal(c, np.abs(a))


@pytest.mark.sim
def test_fragments_cut_at_other_places_are_joined_whole() -> None:
    def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor) -> None:
        x, y, z = (fx.make_rmem_tensor(8, fx.Float32) for _ in range(3))
        for tensor, registers, count in ((A, x, 4), (B, y, 2)):
            shape = fx.make_layout((count, 8 // count), (1, count))
            source, target = (fx.make_view(v.iter, shape) for v in (tensor, registers))
            fx.copy(copy_atom(fx.Float32, 32 * count), source, target)
        z.store(x.load() + y.load())
        C.store(z.load())

    a, b, c = np.arange(8, dtype=np.float32), 10 * np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    run(kernel, a, b, c)
    np.testing.assert_array_equal(c, a + b)
