"""Numbers and vectors: what the host computes is what Python computes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flyllvm.codegen.client import run_host
from flyllvm.codegen.x86 import host_target
from flyllvm.ir import types as t
from flyllvm.ir.core import Value
from tests.codegen.kernels import Making, build, filecheck

HOST = host_target()
X = [3, -7, 100, 5, 12, -1, 8, 40]
Y = [2, 5, -9, 5, 7, 31, -8, 1]


def run(fn: Callable[[Making, Value, Value], Value], count: int, out: int = 8) -> list[int]:
    """``fn(k, x, y)`` on two vectors of i32, as the host computes it; ``out`` i32 of the result."""

    def kernel(k: Making) -> None:
        p, q, r = (k.ptr(n, t.I32, 4) for n in "pqr")
        made = fn(k, k.b.ptr_load(p, count), k.b.ptr_load(q, count))
        k.b.ptr_store(made, r)

    args = [("ptr", struct.pack("<8i", *v)) for v in (X, Y, [0] * 8)]
    got = run_host(build(kernel, HOST).text(), "k", args)[2]
    return list(struct.unpack("<8i", got))[:out]


def vec(count: int) -> t.Type:
    return t.value_type(count, t.I32)


INTS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": lambda a, b: int(a / b),
    "arith.remsi": lambda a, b: a - b * int(a / b),
    "arith.divui": lambda a, b: (a % (1 << 32)) // (b % (1 << 32)),
    "arith.andi": lambda a, b: a & b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.minui": lambda a, b: min(a, b, key=lambda v: v % (1 << 32)),
    "arith.maxui": lambda a, b: max(a, b, key=lambda v: v % (1 << 32)),
}

pytestmark = pytest.mark.llvm


@pytest.mark.parametrize("name", INTS)
def test_integer_operations(name: str) -> None:
    got = run(lambda k, x, y: k.op(name, [x, y], [vec(4)]), 4, 4)
    assert [g % (1 << 32) for g in got] == [INTS[name](a, b) % (1 << 32) for a, b in zip(X[:4], Y[:4])]


SHAPES: dict[str, tuple[Callable[[Making, Value, Value], Value], list[int]]] = {
    "slice": (lambda k, x, y: k.op("vector.extract_strided_slice", [x], [vec(3)], offset=2, size=3), X[2:5]),
    "insert a slice": (
        lambda k, x, y: k.op(
            "vector.insert_strided_slice",
            [k.op("vector.extract_strided_slice", [y], [vec(3)], offset=0, size=3), x],
            [vec(8)],
            offset=4,
        ),
        X[:4] + Y[:3] + X[7:],
    ),
    "shuffle": (lambda k, x, y: k.op("vector.shuffle", [x, y], [vec(4)], mask=(7, 8, 0, 15)), [X[7], Y[0], X[0], Y[7]]),
    "concat of parts": (
        lambda k, x, y: k.op(
            "vector.concat",
            [
                k.op("vector.extract_strided_slice", [y], [vec(4)], offset=1, size=4),
                k.op("vector.extract", [x], [t.I32], position=3),
                k.op("vector.extract_strided_slice", [x], [vec(3)], offset=0, size=3),
            ],
            [vec(8)],
        ),
        Y[1:5] + X[3:4] + X[:3],
    ),
    "concat of halves": (
        lambda k, x, y: k.op(
            "vector.concat",
            [k.op("vector.extract_strided_slice", [v], [vec(4)], offset=o, size=4) for v, o in ((x, 4), (y, 0))],
            [vec(8)],
        ),
        X[4:] + Y[:4],
    ),
    "concat of scalars": (
        lambda k, x, y: k.op(
            "vector.concat", [k.op("vector.extract", [x], [t.I32], position=i) for i in (2, 0)], [vec(2)]
        ),
        [X[2], X[0]],
    ),
    "run-time positions": (
        lambda k, x, y: k.op(
            "vector.insert",
            [k.op("vector.extract", [x, k.op("vector.extract", [y], [t.I32], position=3)], [t.I32]), y, k.b.value(1)],
            [vec(8)],
        ),
        [Y[0], X[5], *Y[2:]],
    ),
    "broadcast": (
        lambda k, x, y: k.op("vector.broadcast", [k.op("vector.extract", [x], [t.I32], position=6)], [vec(4)]),
        [X[6]] * 4,
    ),
    "select": (
        lambda k, x, y: k.op(
            "arith.select",
            [k.op("arith.cmpi", [x, y], [t.VectorType(8, t.I1)], predicate="slt"), x, y],
            [vec(8)],
        ),
        [min(a, b) for a, b in zip(X, Y)],
    ),
    "absolute value": (lambda k, x, y: k.op("math.absi", [x], [vec(8)]), [abs(a) for a in X]),
    "population count": (lambda k, x, y: k.op("math.ctpop", [x], [vec(8)]), [(a % (1 << 32)).bit_count() for a in X]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_vector_operations(name: str) -> None:
    fn, want = SHAPES[name]
    assert run(fn, 8, len(want)) == want


@pytest.mark.parametrize(
    ("kind", "want"), [("add", sum(X)), ("minsi", min(X)), ("maxui", -1), ("xor", int(np.bitwise_xor.reduce(X)))]
)
def test_reductions_take_every_element(kind: str, want: int) -> None:
    assert run(lambda k, x, y: k.op("vector.reduction", [x], [t.I32], kind=kind), 8, 1) == [want]


def test_float_reductions_keep_their_order_unless_they_may_change_it() -> None:
    def fn(k: Making, **attrs: Any) -> None:
        p = k.ptr("p", align=16)
        k.b.ptr_store(k.op("vector.reduction", [k.b.ptr_load(p, 4)], [t.F32], kind="add", **attrs), p)

    filecheck(
        build(fn).text(),
        """
        CHECK: %[[A:v[0-9]+]] = fadd float
        CHECK: %[[B:v[0-9]+]] = fadd float %[[A]]
        CHECK: fadd float %[[B]]
        """,
    )
    filecheck(
        build(lambda k: fn(k, fastmath=("reassoc",))).text(),
        """
        CHECK: %[[A:v[0-9]+]] = fadd reassoc float
        CHECK: %[[B:v[0-9]+]] = fadd reassoc float
        CHECK: fadd reassoc float %[[A]], %[[B]]
        """,
    )


def test_conversions_keep_their_values() -> None:
    def fn(k: Making, x: Value, y: Value) -> Value:
        wide = k.op("arith.extsi", [x], [t.VectorType(4, t.I64)])
        floats = k.op("arith.sitofp", [wide], [t.VectorType(4, t.F64)])
        singles = k.op("arith.truncf", [floats], [t.VectorType(4, t.F32)])
        back = k.op("arith.fptosi", [singles], [t.VectorType(4, t.I16)])
        return k.op("arith.extsi", [back], [vec(4)])

    assert run(fn, 4, 4) == X[:4]


def test_a_bitcast_keeps_element_0_in_the_low_bits() -> None:
    def fn(k: Making, x: Value, y: Value) -> Value:
        bytes_ = k.op("vector.bitcast", [x], [t.VectorType(16, t.I8)])
        low = k.op("vector.extract", [bytes_], [t.I8], position=4)
        return k.op("arith.extsi", [low], [t.I32])

    assert run(fn, 4, 1) == [X[1]]


def test_the_remainder_of_bf16_goes_through_f32() -> None:
    def fn(k: Making) -> None:
        p = k.ptr("p", t.BF16)
        x = k.b.ptr_load(p, 2)
        k.b.ptr_store(k.op("arith.remf", [x, x], [x.type]), p)

    filecheck(build(fn).text(), "CHECK: fpext <2 x bfloat>\nCHECK: frem <2 x float>\nCHECK: fptrunc <2 x float>")


def test_approximations_are_taken_element_by_element() -> None:
    def fn(k: Making) -> None:
        p = k.ptr("p", align=16)
        k.b.ptr_store(k.op("math.rsqrt", [k.b.ptr_load(p, 2)], [t.VectorType(2, t.F32)]), p)

    filecheck(build(fn).text(), "CHECK-COUNT-2: call float @llvm.amdgcn.rsq.f32")


@pytest.mark.parametrize("predicate", ["oeq", "olt", "une", "uno"])
def test_float_comparisons_know_nan(predicate: str) -> None:
    want = {"oeq": [0, 1, 0], "olt": [1, 0, 0], "une": [1, 0, 1], "uno": [0, 0, 1]}[predicate]

    def kernel(k: Making) -> None:
        p, r = k.ptr("p", t.F32, 4), k.ptr("r", t.I32, 4)
        x, y = k.b.ptr_load(p, 3), k.b.ptr_load(k.b.add_offset(p, 3), 3)
        made = k.op("arith.cmpf", [x, y], [t.VectorType(3, t.I1)], predicate=predicate)
        k.b.ptr_store(k.op("arith.extui", [made], [t.VectorType(3, t.I32)]), r)

    nan = float("nan")
    got = run_host(
        build(kernel, HOST).text(), "k", [("ptr", struct.pack("<6f", 1, 2, nan, 2, 2, 1)), ("ptr", bytes(12))]
    )
    assert list(struct.unpack("<3i", got[1])) == want


def test_constants_of_every_type_reach_the_host() -> None:
    def kernel(k: Making) -> None:
        p = k.ptr("p", t.F64)
        values = [k.b.constant(v, ty) for v, ty in ((0.1, t.F64), (0.1, t.F32), (0.5, t.F16), (3.0, t.BF16))]
        for i, v in enumerate(values):
            wide = v if v.type == t.F64 else k.op("arith.extf", [v], [t.F64])
            k.b.ptr_store(wide, k.b.add_offset(p, i))

    (got,) = run_host(build(kernel, HOST).text(), "k", [("ptr", bytes(32))])
    assert struct.unpack("<4d", got) == (0.1, float(np.float32(0.1)), 0.5, 3.0)
