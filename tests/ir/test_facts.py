"""What the parser derives of integers is true of every value, and the text adds what does not follow."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from flyllvm.errors import ParseError
from flyllvm.ir import types as t
from flyllvm.ir.core import OPS, Kernel
from flyllvm.ir.facts import ZERO_DIVISOR, derive, loop_index
from flyllvm.ir.parser import parse_kernel
from flyllvm.ir.printer import print_kernel
from tests.ir.samples import finish, start

Facts = tuple[int, tuple[int, int] | None]
BITS = 8
LOW, HIGH = -(1 << (BITS - 1)), (1 << (BITS - 1)) - 1


def signed(x: int) -> int:
    return (x + (1 << (BITS - 1))) % (1 << BITS) - (1 << (BITS - 1))


def unsigned(x: int) -> int:
    return x % (1 << BITS)


def trunc_div(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def in_shift(b: int) -> bool:
    return 0 <= b < BITS


MEANING: dict[str, tuple[Callable[[int, int], int], Callable[[int, int], bool]]] = {
    "arith.addi": (lambda a, b: a + b, lambda a, b: True),
    "arith.subi": (lambda a, b: a - b, lambda a, b: True),
    "arith.muli": (lambda a, b: a * b, lambda a, b: True),
    "arith.shli": (lambda a, b: a << b, lambda a, b: in_shift(b)),
    "arith.divui": (lambda a, b: unsigned(a) // unsigned(b), lambda a, b: b != 0),
    "arith.divsi": (trunc_div, lambda a, b: b != 0),
    "arith.remui": (lambda a, b: unsigned(a) % unsigned(b), lambda a, b: b != 0),
    "arith.remsi": (lambda a, b: a - trunc_div(a, b) * b, lambda a, b: b != 0),
    "arith.shrui": (lambda a, b: unsigned(a) >> b, lambda a, b: in_shift(b)),
    "arith.shrsi": (lambda a, b: a >> b, lambda a, b: in_shift(b)),
    "arith.andi": (lambda a, b: a & b, lambda a, b: True),
    "arith.ori": (lambda a, b: a | b, lambda a, b: True),
    "arith.xori": (lambda a, b: a ^ b, lambda a, b: True),
    "arith.minsi": (min, lambda a, b: True),
    "arith.maxsi": (max, lambda a, b: True),
}


@st.composite
def operand(draw: st.DrawFn) -> tuple[Facts, int]:
    """Facts, and a value for which they hold."""
    value = draw(st.integers(LOW, HIGH))
    if draw(st.booleans()):
        return (abs(value) or ZERO_DIVISOR, (value, value)), value
    divisors = [d for d in range(1, 129) if value % d == 0]
    rng = (draw(st.integers(LOW, value)), draw(st.integers(value, HIGH))) if draw(st.booleans()) else None
    return (draw(st.sampled_from(divisors)), rng), value


def holds(facts: Facts, value: int) -> bool:
    return value % facts[0] == 0 and (facts[1] is None or facts[1][0] <= value <= facts[1][1])


def operation(name: str, **attrs: object) -> object:
    kernel = Kernel("k")
    args = [kernel.add_arg(t.I8, n) for n in "ab"]
    return OPS[name](args, [t.I8], attrs)


@pytest.mark.parametrize("name", MEANING)
@given(operand(), operand(), st.booleans())
def test_what_follows_of_an_operation_is_true(name: str, a: tuple[Facts, int], b: tuple[Facts, int], nsw: bool) -> None:
    compute, defined = MEANING[name]
    if not defined(a[1], b[1]):
        return
    exact = compute(a[1], b[1])
    wraps = name in ("arith.addi", "arith.subi", "arith.muli", "arith.shli")
    if nsw and wraps and signed(exact) != exact:
        return
    op = operation(name, **({"overflow": ("nsw",)} if nsw and wraps else {}))
    facts = derive(op, [a[0], b[0]], {})
    assert holds(facts, signed(exact)), (facts, signed(exact))


@given(operand(), st.sampled_from(["arith.extsi", "arith.extui", "arith.trunci"]))
def test_what_follows_of_a_conversion_is_true(a: tuple[Facts, int], name: str) -> None:
    source, target = (t.I8, t.I16) if name != "arith.trunci" else (t.I8, t.I4)
    kernel = Kernel("k")
    op = OPS[name]([kernel.add_arg(source, "a")], [target])
    raw = unsigned(a[1]) if name == "arith.extui" else a[1]
    half = 1 << (target.bits - 1)
    assert holds(derive(op, [a[0]], {}), (raw + half) % (2 * half) - half)


@given(operand(), operand(), st.integers(1, 20))
def test_what_follows_of_a_loop_index_is_true(low: tuple[Facts, int], high: tuple[Facts, int], step: int) -> None:
    facts = loop_index(low[0], high[0], (step, (step, step)), BITS)
    assert all(holds(facts, i) for i in range(low[1], high[1], step))


def test_the_text_adds_only_what_does_not_follow() -> None:
    b, (n,) = start("k", (t.I32, "n"))
    tid = b.thread_id()
    b.index_add(b.index_mul(tid, 4), 3)
    unknown = b.addi(n, n)
    unknown.divisibility, unknown.range = 24, (-48, 96)
    text = print_kernel(finish(b))
    assert text.count("fly.range") == 1
    assert "arith.addi %n, %n {fly.divisibility = 24 : i32, fly.range = array<i32: -48, 96>} : i32" in text
    again = parse_kernel(text)
    assert print_kernel(again) == text
    told = again.body.ops[-2].results[0]
    assert (told.divisibility, told.range) == (24, (-48, 96))
    assert told.op is not None and told.op.attrs == {}


@pytest.mark.parametrize(
    ("attrs", "what", "fix"),
    [
        ("fly.divisibility = 0", "fly.divisibility is 0", "give a positive integer"),
        ("fly.range = 1 : i32", "fly.range is 1", "give array<i32: LOWEST, HIGHEST>"),
        ("fly.range = array<i32: 2, 1>", "fly.range is (2, 1)", "give array<i32: LOWEST, HIGHEST>"),
    ],
)
def test_a_malformed_fact_is_refused(attrs: str, what: str, fix: str) -> None:
    with pytest.raises(ParseError) as info:
        parse_kernel(f"gpu.func @k(%n: i32) kernel {{ %0 = arith.addi %n, %n {{{attrs}}} : i32 }}")
    assert what in str(info.value) and fix in str(info.value)


def test_a_reader_knows_what_the_builder_knew_of_ids() -> None:
    b, _ = start("k", known_block_size=(64, 4, 1))
    ids = [b.thread_id("x"), b.thread_id("y"), b.block_id("x"), b.grid_dim("z"), b.lane_id()]
    text = print_kernel(finish(b))
    again = parse_kernel(text).body.ops
    assert [op.results[0].range for op in again[:-1]] == [v.range for v in ids]
    assert "fly.range" not in text


def test_an_argument_keeps_its_bounds() -> None:
    b, (n,) = start("k", (t.I32, "n"))
    n.range = (0, 4095)
    text = print_kernel(finish(b))
    assert "%n: i32 {fly.range = array<i32: 0, 4095>}" in text
    again = parse_kernel(text)
    assert again.args[0].range == (0, 4095)
    assert again.arg_attrs == [{"name": "n"}]


def test_a_constant_written_as_a_pattern_of_bits_counts_as_the_signed_number() -> None:
    kernel = parse_kernel("gpu.func @k() kernel { %0 = arith.constant 4294967295 : i32 }")
    value = kernel.body.ops[0].results[0]
    assert (value.static_value(), value.range, value.divisibility) == (-1, (-1, -1), 1)
