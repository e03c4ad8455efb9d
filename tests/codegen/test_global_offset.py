"""Offsets into global memory: split for the hardware, and still the same address.  The text is run as well."""

from __future__ import annotations

import operator
import re
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st

from flyllvm.codegen.levers import reduces_strength
from flyllvm.ir import types as t
from tests.codegen.kernels import Making, body_of, build, filecheck

BLOCK = (256, 1, 1)
M64 = (1 << 64) - 1
OPS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "shl": operator.lshift}
IDS = {"workitem.id.x": "tid", "workgroup.id.x": "bid"}


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def run(text: str, known: dict[str, int]) -> list[int]:
    """The addresses that the stores of straight-line text write to; flags of instructions must hold."""
    env: dict[str, int] = {f"%{name}": value for name, value in known.items()}
    stored = []

    def get(operand: str) -> int:
        return env[operand] if operand[0] == "%" else int(operand)

    for line in body_of(text).splitlines():
        name, _, rhs = line.strip().partition(" = ")
        if found := re.match(r"store .*ptr addrspace\(1\) (\S+),", name):
            stored.append(get(found[1]) & M64)
        elif found := re.search(r"@llvm\.amdgcn\.([a-z.]+)\(\)", rhs):
            env[name] = known[IDS[found[1]]]
        elif found := re.match(r"getelementptr i8, ptr addrspace\(1\) (\S+), i64 (\S+)", rhs):
            env[name] = get(found[1]) + get(found[2])
        elif found := re.match(r"(zext|sext|trunc) i(\d+) (\S+) to i(\d+)", rhs):
            value = get(found[3])
            env[name] = signed(value & ((1 << int(found[2])) - 1) if found[1] == "zext" else value, int(found[4]))
        elif found := re.match(r"(add|sub|mul|shl)((?: nuw| nsw)*) i(\d+) (\S+), (\S+)", rhs):
            a, b, bits = get(found[4]), get(found[5]), int(found[3])
            exact = OPS[found[1]](a, b)
            env[name] = signed(exact, bits)
            assert "nsw" not in found[2] or env[name] == exact, line
            if "nuw" in found[2]:
                x, y = a & ((1 << bits) - 1), b & ((1 << bits) - 1)
                assert 0 <= OPS[found[1]](x, y) < 1 << bits, line
    return stored


class Num:
    """An index in a kernel together with the number it stands for."""

    def __init__(self, value: Any, exact: int) -> None:
        self.value, self.exact = value, exact
        bits = 64 if isinstance(value, int) else value.width
        # An index does not overflow its width.
        assume(signed(exact, bits) == exact)


def combine(k: Making, draw: Any, parts: list[Num]) -> Num:
    """A random sum of products of parts."""
    total = draw(st.sampled_from(parts))
    for _ in range(draw(st.integers(0, 4))):
        part = draw(st.sampled_from(parts))
        factor = draw(st.sampled_from((1, 3, 4, 128, 4096)))
        more = Num(k.b.index_mul(part.value, factor), part.exact * factor)
        both = (total, more) if draw(st.booleans()) else (more, total)
        total = Num(k.b.index_add(both[0].value, both[1].value), total.exact + more.exact)
        if draw(st.integers(0, 3)) == 0:
            number = draw(st.integers(-5000, 5000))
            total = Num(k.b.index_add(total.value, number), total.exact + number)
    return total


@given(st.data())
def test_a_split_offset_leads_to_the_same_address(data: Any) -> None:
    draw = data.draw
    known = {
        "p": draw(st.integers(0, 1 << 40)) * 16,
        "tid": draw(st.integers(0, 255)),
        "bid": draw(st.one_of(st.integers(0, 9), st.integers(0, (1 << 31) - 1))),
        "n": draw(st.one_of(st.integers(-99, 99), st.integers(-(1 << 31), (1 << 31) - 1))),
        "wide": draw(st.integers(-(1 << 40), 1 << 40)),
    }
    elem = draw(st.sampled_from((t.I8, t.F16, t.F32)))
    moves = []

    def body(k: Making) -> None:
        p, n, wide = k.ptr("p", elem, 1), k.arg(t.I32, "n"), k.arg(t.I64, "wide")
        values = {"tid": k.b.thread_id(), "bid": k.b.block_id(), "n": n, "wide": wide}
        parts = [Num(value, known[name]) for name, value in values.items()]
        for _ in range(draw(st.integers(1, 3))):
            offset = combine(k, draw, parts)
            bits = 32 if isinstance(offset.value, int) else offset.value.width
            # An index does not overflow its width.
            assume(signed(offset.exact, bits) == offset.exact)
            moves.append(offset.exact)
            p = k.b.add_offset(p, offset.value)
        k.b.ptr_store(k.b.constant(0, elem) if elem is t.I8 else k.b.constant(0.0, elem), p)

    text = build(body, known_block_size=BLOCK).text()
    (stored,) = run(text, known)
    assert stored == (known["p"] + sum(moves) * (elem.bits // 8)) & M64


def store_at(fn: Any, elem: t.ScalarType = t.F32, **attrs: Any) -> str:
    def body(k: Making) -> None:
        p = k.ptr("p", elem)
        k.b.ptr_store(k.b.constant(0.0, elem), k.b.add_offset(p, fn(k)))

    return body_of(build(body, **({"known_block_size": BLOCK} | attrs)).text())


def test_what_lanes_share_moves_the_base_and_a_lane_keeps_32_bits() -> None:
    def offset(k: Making, bid: Any) -> Any:
        return k.b.index_add(k.b.index_mul(bid, 1 << 20), k.b.index_add(k.b.thread_id(), 5))

    filecheck(
        store_at(lambda k: offset(k, k.b.to_width(k.b.block_id(), t.I64))),
        """
        CHECK: %[[BID:v[0-9]+]] = shl nsw nuw i64 %{{v[0-9]+}}, 20
        CHECK: %[[U:v[0-9]+]] = shl i64 %[[BID]], 2
        CHECK: %[[L:v[0-9]+]] = shl nuw nsw i32 %{{v[0-9]+}}, 2
        CHECK: %[[B:v[0-9]+]] = getelementptr i8, ptr addrspace(1) %p, i64 %[[U]]
        CHECK: %[[Z:v[0-9]+]] = zext i32 %[[L]] to i64
        CHECK: %[[A:v[0-9]+]] = getelementptr i8, ptr addrspace(1) %[[B]], i64 %[[Z]]
        CHECK: %[[C:v[0-9]+]] = getelementptr i8, ptr addrspace(1) %[[A]], i64 20
        CHECK: store float 0x0000000000000000, ptr addrspace(1) %[[C]]
        """,
    )
    # In 32 bits the product of an unbounded block id may wrap: the sum stays whole.
    text = store_at(lambda k: offset(k, k.b.block_id()))
    assert "sext i32" in text and text.count("getelementptr") == 2


def test_a_lane_offset_that_may_pass_32_bits_is_64_bits_wide() -> None:
    far = lambda k: k.b.index_mul(k.b.to_width(k.b.thread_id(), t.I64), 1 << 24)  # noqa: E731
    near = lambda k: k.b.index_mul(k.b.to_width(k.b.thread_id(), t.I64), 1 << 20)  # noqa: E731
    assert "zext i32" in store_at(near) and re.search(r"shl nuw nsw i32 %v\d+, 22", store_at(near))
    assert re.search(r"shl i64 %v\d+, 2\n", store_at(far)) and not re.search("shl nuw nsw i32", store_at(far))


@pytest.mark.parametrize(
    ("arch", "constant", "low"),
    [("gfx942", 1023, 4092), ("gfx942", 1024, None), ("gfx942", 1027, 12), ("gfx1200", 1 << 20, 1 << 22)],
)
def test_a_constant_that_the_instruction_has_no_room_for_goes_to_the_lanes(
    arch: str, constant: int, low: int | None
) -> None:
    text = store_at(lambda k: k.b.index_add(k.b.thread_id(), constant), target=arch)
    found = re.findall(r"getelementptr i8, ptr addrspace\(1\) %v\d+, i64 (\d+)", text)
    assert found == ([] if low is None else [str(low)])
    rest = constant * 4 - (low or 0)
    assert (f"add nsw nuw i32 %v2, {rest}" in text) == bool(rest)


def loop_text(more: Any) -> str:
    def body(k: Making) -> None:
        p, n = k.ptr("p"), k.arg(t.I32, "n")

        def once(i: Any) -> None:
            offset = k.b.index_add(k.b.index_mul(i, 1 << 16), more(k, n))
            k.b.ptr_store(k.b.constant(0.0, t.F32), k.b.add_offset(p, offset))

        k.b.for_(0, n, 1, [], once)

    return build(body, known_block_size=BLOCK).text()


def test_in_a_loop_small_parts_leave_a_sum_of_unknown_range_and_strength_is_not_reduced() -> None:
    text = loop_text(lambda k, n: k.b.thread_id())
    assert not reduces_strength(text)
    filecheck(
        text,
        """
        CHECK: %[[T:v[0-9]+]] = shl nuw nsw i32 %{{v[0-9]+}}, 2
        CHECK: loop0:
        CHECK: %[[U:v[0-9]+]] = sext i32 %{{v[0-9]+}} to i64
        CHECK: %[[B:v[0-9]+]] = shl i64 %[[U]], 2
        CHECK: %[[P:v[0-9]+]] = getelementptr i8, ptr addrspace(1) %p, i64 %[[B]]
        CHECK: %[[Z:v[0-9]+]] = zext i32 %[[T]] to i64
        CHECK: getelementptr i8, ptr addrspace(1) %[[P]], i64 %[[Z]]
        """,
    )


def test_a_sum_whose_parts_may_all_be_large_wraps_where_it_is_an_index_too() -> None:
    (wrapped,) = re.findall(r"(%v\d+) = add i32 .*%n", text := loop_text(lambda k, n: n))
    assert re.search(rf"sext i32 {wrapped} to i64", text)


def test_a_sum_extended_as_an_unsigned_number_stays_whole_where_it_may_be_negative() -> None:
    def offset(k: Making, least: int) -> Any:
        number = k.b.index_add(k.b.index_add(k.b.thread_id(), k.b.index_rem(k.b.block_id(), 8)), least)
        return k.b.cast("arith.extui", number, t.I64)

    assert "zext i32 %v" in (text := store_at(lambda k: offset(k, -3))) and text.count("getelementptr") == 1
    assert store_at(lambda k: offset(k, 3)).count("getelementptr") == 3


def test_strength_is_reduced_where_loops_do_not_say_otherwise() -> None:
    def body(k: Making) -> None:
        p, n = k.ptr("p"), k.arg(t.I32, "n")
        k.b.for_(0, n, 1, [], lambda i: k.b.ptr_store(k.b.constant(0.0, t.F32), k.b.add_offset(p, k.b.index_mul(i, n))))

    assert reduces_strength(build(body).text()) and reduces_strength("define void @f() {\n}\n")


@pytest.mark.parametrize("step", ["argument", "lane"])
def test_a_carried_offset_moves_the_base_as_long_as_lanes_share_it(step: str) -> None:
    def body(k: Making) -> None:
        p, n = k.ptr("p"), k.arg(t.I32, "n")
        more = n if step == "argument" else k.b.thread_id()

        def once(i: Any, at: Any) -> list[Any]:
            k.b.ptr_store(k.b.constant(0.0, t.F32), k.b.add_offset(p, k.b.index_add(at, k.b.thread_id())))
            return [k.b.index_add(at, more)]

        k.b.for_(0, n, 1, [k.b.value(k.b.block_id())], once)

    text = build(body, known_block_size=BLOCK).text()
    assert reduces_strength(text) == (step == "lane")
    (phi,) = re.findall(r"(%v\d+) = phi i32 \[ %v\d+, %entry \]", text)
    # By itself it moves the base; with a part of each lane the sum is one 64-bit offset.
    assert bool(re.search(rf"sext i32 {phi} to i64", text)) == (step == "argument")


def test_a_carried_number_may_come_from_any_number_of_operations() -> None:
    def body(k: Making) -> None:
        p, n = k.ptr("p", t.I32), k.arg(t.I32, "n")

        def once(i: Any, x: Any) -> list[Any]:
            for _ in range(3000):
                x = k.b.binary("arith.xori", k.b.binary("arith.muli", x, x), n)
            return [x]

        (end,) = k.b.for_(0, n, 1, [n], once)
        k.b.ptr_store(end, p)

    assert build(body).text().count("xor i32") == 3000


def test_a_pointer_that_a_loop_carries_keeps_what_lanes_share() -> None:
    def body(k: Making) -> None:
        start = k.b.add_offset(k.ptr("p"), k.b.to_width(k.b.block_id(), t.I64))
        start = k.b.add_offset(start, k.b.thread_id())

        def once(i: Any, q: Any) -> list[Any]:
            k.b.ptr_store(k.b.constant(0.0, t.F32), q)
            return [k.b.add_offset(k.b.add_offset(q, k.b.to_width(k.b.block_id(), t.I64)), 7)]

        k.b.for_(0, 3, 1, [start], once)

    text = build(body, known_block_size=BLOCK).text()
    # Unrolled by hand: the offset is a phi of all parts.
    phi = re.search(r"(%v\d+) = phi i64 \[ (%v\d+), %entry \], \[ (%v\d+), %loop0 \]", text)
    assert phi is not None
    assert re.search(rf"{phi[2]} = add i64 %v\d+, %v\d+", text) and re.search(rf"add i64 .*{phi[1]}", text)
