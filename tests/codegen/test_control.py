"""Control flow: its shape in text, and its meaning when the host runs it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from flyllvm.codegen import compile_llvm
from flyllvm.codegen.client import run_host
from flyllvm.codegen.x86 import host_target
from flyllvm.ir import types as t
from flyllvm.ir.core import Value
from tests.codegen.kernels import Making, body_of, build, filecheck

HOST = host_target()


def run(fn: Callable[[Making], None], buffers: list[list[int]], *numbers: int) -> list[list[int]]:
    """Runs a kernel on the host: pointers to i32 first, then i32 numbers."""
    args: list[tuple[str, Any]] = [("ptr", struct.pack(f"<{len(b)}i", *b)) for b in buffers]
    args += [("i32", n) for n in numbers]
    got = run_host(build(fn, HOST).text(), "k", args)
    return [list(struct.unpack(f"<{len(b) // 4}i", b)) for b in got]


def ints(k: Making, name: str) -> Value:
    return k.ptr(name, t.I32)


def at(k: Making, p: Value, i: Any) -> Value:
    return k.b.add_offset(p, i)


# --- loops ----------------------------------------------------------------------------------------


def summing(k: Making) -> None:
    out, n, step = ints(k, "out"), k.arg(t.I32, "n"), k.arg(t.I32, "step")
    zero = k.b.constant(0, t.I32)
    total, count = k.b.for_(
        2,
        n,
        step,
        [zero, zero],
        lambda i, s, c: [k.b.binary("arith.addi", s, i), k.b.binary("arith.addi", c, k.b.value(1))],
    )
    k.b.ptr_store(total, out)
    k.b.ptr_store(count, at(k, out, 1))


def test_a_loop_is_rotated_behind_a_guard() -> None:
    filecheck(
        build(summing).text(),
        """
        CHECK-DAG: %[[B:v[0-9]+]] = icmp slt i32 2, %n
        CHECK-DAG: %[[F:v[0-9]+]] = icmp sgt i32 %step, 0
        CHECK: %[[G:v[0-9]+]] = and i1 %[[B]], %[[F]]
        CHECK: %[[L:v[0-9]+]] = sub i32 %{{v[0-9]+}}, %step
        CHECK-NEXT: br i1 %[[G]], label %loop0, label %exit0
        CHECK-NEXT: loop0:
        CHECK-NEXT: %[[I:v[0-9]+]] = phi i32 [ 2, %entry ], [ %[[N:v[0-9]+]], %loop0 ]
        CHECK: %[[N]] = add i32 %[[I]], %step
        CHECK-NEXT: %[[C:v[0-9]+]] = icmp slt i32 %[[I]], %[[L]]
        CHECK-NEXT: br i1 %[[C]], label %loop0, label %exit0
        CHECK-NEXT: exit0:
        CHECK-NEXT: phi i32 [ 0, %entry ], [ %{{v[0-9]+}}, %loop0 ]
        """,
    )


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("n", "step"), [(10, 3), (3, 1), (2, 1), (-5, 1), (100, 7), (2**31 - 1, 2**30), (10, -3), (-9, -2)]
)
def test_a_loop_runs_as_a_range_does(n: int, step: int) -> None:
    expected = range(2, n, step) if step > 0 else []
    assert run(summing, [[9, 9]], n, step) == [[sum(expected), len(expected)]]


def test_a_loop_that_surely_runs_has_no_guard_and_one_that_never_runs_no_code() -> None:
    def fn(k: Making, low: int, high: int) -> None:
        out = ints(k, "out")
        (total,) = k.b.for_(low, high, 1, [k.b.constant(5, t.I32)], lambda i, s: [k.b.binary("arith.addi", s, i)])
        k.b.ptr_store(total, out)

    filecheck(build(lambda k: fn(k, 0, 4)).text(), "CHECK: entry:\nCHECK-NEXT: br label %loop0")
    filecheck(build(lambda k: fn(k, 4, 4)).text(), "CHECK: entry:\nCHECK-NEXT: store i32 5")


def test_an_advancing_pointer_is_carried_as_its_offset() -> None:
    def fn(k: Making) -> None:
        p, out, n = ints(k, "p"), ints(k, "out"), k.arg(t.I32, "n")
        start = k.b.add_offset(p, 3)

        def body(i: Value, q: Value, total: Value) -> list[Value]:
            return [k.b.add_offset(q, 4), k.b.binary("arith.addi", total, k.b.ptr_load(q))]

        _, total = k.b.for_(0, n, 1, [start, k.b.constant(0, t.I32)], body)
        k.b.ptr_store(total, out)

    filecheck(
        build(fn).text(),
        """
        CHECK: loop0:
        CHECK: %[[O:v[0-9]+]] = phi i64 [ 0, %entry ], [ %[[NEXT:v[0-9]+]], %loop0 ]
        CHECK: %[[Q:v[0-9]+]] = getelementptr i8, ptr addrspace(1) %p, i64 %[[O]]
        CHECK-NEXT: getelementptr i8, ptr addrspace(1) %[[Q]], i64 12
        CHECK: %[[NEXT]] = add i64 %[[O]], 16
        """,
    )


def swapping(k: Making) -> None:
    p, q, out, n = ints(k, "p"), ints(k, "q"), ints(k, "out"), k.arg(t.I32, "n")

    def body(i: Value, a: Value, b: Value, total: Value) -> list[Value]:
        here = k.b.binary("arith.addi", total, k.b.ptr_load(k.b.add_offset(a, i)))
        return [b, a, k.b.binary("arith.muli", here, k.b.value(3))]

    _, _, total = k.b.for_(0, n, 1, [p, q, k.b.constant(0, t.I32)], body)
    k.b.ptr_store(total, out)


def test_pointers_that_change_their_base_are_carried_whole() -> None:
    filecheck(
        build(swapping).text(),
        """
        CHECK: %[[A:v[0-9]+]] = phi ptr addrspace(1) [ %p, %entry ], [ %[[B:v[0-9]+]], %loop0 ]
        CHECK: %[[B]] = phi ptr addrspace(1) [ %q, %entry ], [ %[[A]], %loop0 ]
        """,
    )


@pytest.mark.llvm
def test_swapped_pointers_alternate() -> None:
    p, q, n = [1, 2, 3, 4], [10, 20, 30, 40], 4
    want = 0
    for i in range(n):
        want = (want + (p, q)[i % 2][i]) * 3
    assert run(swapping, [p, q, [0]], n)[2] == [want]


def test_a_buffer_that_moves_is_carried_as_a_32_bit_offset() -> None:
    def fn(k: Making) -> None:
        p, n, out = k.ptr("p"), k.arg(t.I32, "n"), k.ptr("out")
        buffer = k.b.make_buffer(p, k.b.constant(1024, t.I64))

        def body(i: Value, b: Value, s: Value) -> list[Value]:
            return [k.b.add_offset(b, 8), k.b.binary("arith.addf", s, k.b.ptr_load(b))]

        _, total = k.b.for_(0, n, 1, [buffer, k.b.constant(0.0, t.F32)], body)
        k.b.ptr_store(total, out)

    filecheck(
        build(fn).text(),
        """
        CHECK: loop0:
        CHECK-NEXT: phi i32
        CHECK-NEXT: %[[O:v[0-9]+]] = phi i32 [ 0, %entry ], [ %[[N:v[0-9]+]], %loop0 ]
        CHECK: raw.ptr.buffer.load.i32(ptr addrspace(8) %{{v[0-9]+}}, i32 %[[O]], i32 0, i32 0)
        CHECK: %[[N]] = add i32 %[[O]], 32
        """,
    )


def test_a_value_that_the_body_hands_on_unchanged_needs_no_phi() -> None:
    def fn(k: Making) -> None:
        p, n = k.ptr("p"), k.arg(t.I32, "n")
        x = k.b.ptr_load(p)
        same, _ = k.b.for_(0, n, 1, [x, x], lambda i, a, b: [a, k.b.binary("arith.addf", a, b)])
        k.b.ptr_store(same, p)

    assert body_of(build(fn).text()).count("phi float") == 0  # the sum is dead, and `same` is %x


def test_vectors_are_carried_whole() -> None:
    def fn(k: Making) -> None:
        p, n = k.ptr("p", align=16), k.arg(t.I32, "n")
        (v,) = k.b.for_(0, n, 1, [k.b.ptr_load(p, 4)], lambda i, v: [k.b.binary("arith.addf", v, v)])
        k.b.ptr_store(v, p)

    filecheck(build(fn).text(), "CHECK: phi <4 x float> [ %v{{[0-9]+}}, %entry ]")


def test_loop_hints_become_a_node_that_refers_to_itself() -> None:
    def fn(k: Making, unroll: object) -> None:
        p, n = k.ptr("p"), k.arg(t.I32, "n")
        k.b.for_(0, n, 1, [], lambda i: k.b.ptr_store(k.b.constant(1.0, t.F32), k.b.add_offset(p, i)))
        k.kernel.body.ops[-1].attrs["unroll"] = unroll

    filecheck(
        build(lambda k: fn(k, False)).text(),
        """
        CHECK: br i1 {{.*}}, !llvm.loop ![[L:[0-9]+]]
        CHECK: = !{!"llvm.loop.unroll.disable"}
        CHECK: ![[L]] = distinct !{![[L]], !
        """,
    )
    filecheck(build(lambda k: fn(k, 4)).text(), 'CHECK: !{!"llvm.loop.unroll.count", i32 4}')
    assert "llvm.loop" not in build(lambda k: fn(k, None)).text()


# --- if -------------------------------------------------------------------------------------------


def choosing(k: Making) -> None:
    out, p, x = ints(k, "out"), ints(k, "p"), k.arg(t.I32, "x")
    positive = k.b.cmpi("sgt", x, k.b.value(0))
    value, pointer = k.b.if_(
        positive,
        lambda: [k.b.ptr_load(p), k.b.add_offset(out, 1)],
        lambda: [k.b.binary("arith.subi", k.b.value(0), x), k.b.add_offset(out, 2)],
    )
    k.b.ptr_store(value, pointer)


def test_both_branches_meet_in_phis_and_pointers_of_one_base_in_an_offset() -> None:
    filecheck(
        build(choosing).text(),
        """
        CHECK: br i1 %{{v[0-9]+}}, label %then0, label %else0
        CHECK: then0:
        CHECK: else0:
        CHECK: join0:
        CHECK-NEXT: phi i32 [ %{{v[0-9]+}}, %then0 ], [ %{{v[0-9]+}}, %else0 ]
        CHECK-NEXT: %[[O:v[0-9]+]] = phi i64 [ 0, %then0 ], [ 4, %else0 ]
        CHECK: getelementptr i8, ptr addrspace(1) %out, i64 %[[O]]
        """,
    )


@pytest.mark.llvm
@pytest.mark.parametrize(("x", "want"), [(5, [0, 77, 0]), (-5, [0, 0, 5]), (0, [0, 0, 0])])
def test_an_if_takes_one_branch(x: int, want: list[int]) -> None:
    assert run(choosing, [[0, 0, 0], [77]], x)[0] == want


def test_an_if_without_else_is_one_branch_around() -> None:
    def fn(k: Making) -> None:
        p, c = k.ptr("p"), k.arg(t.I1, "c")
        old = k.b.constant(2.0, t.F32)
        (x,) = k.b.if_(c, lambda: [k.b.ptr_load(p)], lambda: [old])
        k.b.ptr_store(x, p)

    filecheck(
        build(fn).text(),
        """
        CHECK: %[[C:v[0-9]+]] = trunc i8 %c to i1
        CHECK-NEXT: br i1 %[[C]], label %then0, label %join0
        CHECK: join0:
        CHECK-NEXT: phi float [ %{{v[0-9]+}}, %then0 ], [ 0x4000000000000000, %entry ]
        """,
    )


def test_a_constant_condition_keeps_one_branch_and_no_block() -> None:
    def fn(k: Making) -> None:
        p = k.ptr("p")
        one, two = k.b.constant(1.0, t.F32), k.b.constant(2.0, t.F32)
        (x,) = k.b.if_(k.b.constant(1, t.I1), lambda: [one], lambda: [two])
        k.b.ptr_store(x, p)

    assert body_of(build(fn).text()).splitlines() == [
        "  store float 0x3FF0000000000000, ptr addrspace(1) %p, align 4",
        "  ret void",
    ]


def test_pointers_of_two_bases_meet_as_pointers() -> None:
    def fn(k: Making) -> None:
        p, q, c = k.ptr("p"), k.ptr("q"), k.arg(t.I1, "c")
        (r,) = k.b.if_(c, lambda: [k.b.add_offset(p, 2)], lambda: [q])
        k.b.ptr_store(k.b.constant(1.0, t.F32), r)

    filecheck(
        build(fn).text(),
        """
        CHECK: then0:
        CHECK-NEXT: %[[P:v[0-9]+]] = getelementptr i8, ptr addrspace(1) %p, i64 8
        CHECK: phi ptr addrspace(1) [ %[[P]], %then0 ], [ %q, %{{else0|entry}} ]
        """,
    )


# --- while ----------------------------------------------------------------------------------------


def collatz(k: Making) -> None:
    out, n = ints(k, "out"), k.arg(t.I32, "n")
    b = k.b

    def before(x: Value, steps: Value) -> tuple[Value, list[Value]]:
        return b.cmpi("ne", x, b.value(1)), [steps, x]

    def after(steps: Value, x: Value) -> list[Value]:
        odd = b.cmpi("ne", b.binary("arith.andi", x, b.value(1)), b.value(0))
        (y,) = b.if_(
            odd,
            lambda: [b.binary("arith.addi", b.binary("arith.muli", x, b.value(3)), b.value(1))],
            lambda: [b.binary("arith.shrsi", x, b.value(1))],
        )
        return [y, b.binary("arith.addi", steps, b.value(1))]

    steps, last = b.while_([n, b.constant(0, t.I32)], before, after)
    b.ptr_store(steps, out)
    b.ptr_store(last, at(k, out, 1))


def test_a_while_tests_before_its_body() -> None:
    filecheck(
        build(collatz).text(),
        """
        CHECK: br label %test0
        CHECK-NEXT: test0:
        CHECK-NEXT: phi i32 [ %n, %entry ], [ %{{v[0-9]+}}, %join1 ]
        CHECK: br i1 %{{v[0-9]+}}, label %body0, label %exit0
        CHECK-NEXT: body0:
        CHECK: br label %test0
        CHECK-NEXT: exit0:
        """,
    )


@pytest.mark.llvm
def test_a_while_ends_when_its_condition_fails() -> None:
    assert run(collatz, [[0, 0]], 27) == [[111, 1]]
    assert run(collatz, [[9, 9]], 1) == [[0, 1]]


def nested(k: Making) -> None:
    """Sums p[i * m + j] over the upper triangle, with everything that can leave the loops leaving them."""
    out, p, n = ints(k, "out"), ints(k, "p"), k.arg(t.I32, "n")
    b = k.b

    def outer(i: Value, total: Value) -> list[Value]:
        def inner(j: Value, s: Value) -> list[Value]:
            (s,) = b.if_(
                b.cmpi("sge", j, i),
                lambda: [b.binary("arith.addi", s, b.ptr_load(b.add_offset(p, i * n + j)))],
                lambda: [s],
            )
            return [s]

        return list(b.for_(0, n, 1, [total], inner))

    (total,) = b.for_(0, n, 1, [b.constant(0, t.I32)], outer)
    b.ptr_store(total, out)


@pytest.mark.llvm
@pytest.mark.parametrize("n", [0, 1, 5])
def test_nested_loops_and_branches_compute_what_python_does(n: int) -> None:
    data = [(7 * x) % 31 for x in range(25)]
    want = sum(data[i * n + j] for i in range(n) for j in range(i, n))
    assert run(nested, [[-1], data], n)[0] == [want]


@pytest.mark.llvm
@pytest.mark.parametrize("arch", ["gfx942", "gfx1250"])
@pytest.mark.parametrize("fn", [summing, swapping, choosing, collatz, nested], ids=lambda fn: fn.__name__)
def test_llvm_takes_every_form_of_control_flow(fn: Callable[[Making], None], arch: str) -> None:
    made = build(fn, arch)
    for options in ({"debug": True}, {"opt_level": 3, "passes": "O1"}):
        compiled = {k: v for k, v in options.items() if k != "debug"}
        text = made.text(debug=bool(options.get("debug")))
        assert compile_llvm(text, made.target, **compiled).object  # type: ignore[arg-type]
