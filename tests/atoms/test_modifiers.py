"""Modifiers, variants and state of matrix atoms; copies of replicated operands; the asynchronous LDS copies."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.atoms import all_rows
from flyllvm.atoms.base import Stateful
from flyllvm.atoms.flags import FlaggedRowMma
from flyllvm.atoms.rocdl import gfx11_wmma, gfx1250_wmma
from flyllvm.atoms.rocdl.cdna4_async_lds import BufferLoadAsyncLds, GlobalLoadAsyncLds
from flyllvm.atoms.rocdl.cdna4_mfma_scale import find_mfma_scale
from flyllvm.atoms.rocdl.gfx1250_wmma_scale import find_wmma_scale
from flyllvm.atoms.rocdl.wmma import Wmma, find_wmma
from flyllvm.errors import AtomError, ParseError, SimError, StateError, TargetError
from flyllvm.ir import lltype as ll, types as t
from flyllvm.ir.protocols import LLValue, parse_payload
from flyllvm.layout import Swizzle
from flyllvm.sim import matrix
from flyllvm.target import Target
from tests.atoms.emitter import Recorder, operand, value
from tests.atoms.test_probes import CallRecorder, fragments
from tests.sim import probes

FLAGGED = [op for op in all_rows() if isinstance(op, FlaggedRowMma)]
STATEFUL = [op for op in all_rows() if isinstance(op, Stateful)]
SCALED = {"cdna4.mfma_scale", "gfx1250.wmma_scale"}


def call(op: FlaggedRowMma, processor: str, *fields: LLValue) -> tuple[str, list[LLValue]]:
    em = CallRecorder(processor, op.row.wave)
    a, b, c = (value(type_, name) for type_, name in zip(op.register_types(), "abc"))
    state = em.struct_of(*fields) if fields else None
    op.emit_atom_call_ssa(em, state, a, b, c)
    ((name, args),) = em.calls
    return name, list(args)


# --- spelling -------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", FLAGGED, ids=lambda op: op.name)
def test_every_flag_is_spelled_read_back_and_refused_out_of_range(op: FlaggedRowMma) -> None:
    flags = op.flags_of(op.row)
    full = type(op)(op.row, {flag.name: flag.maximum for flag in flags})
    assert parse_payload(op.mnemonic, full.params) == full
    assert all(f"{flag.name} = {flag.maximum}" in full.params for flag in flags if flag.maximum)
    for flag in flags:
        with pytest.raises(AtomError, match=f"{flag.name} is 0 to {flag.maximum}: "):
            type(op)(op.row, {flag.name: flag.maximum + 1})
    with pytest.raises(AtomError, match="has no flag 'opselZ'"):
        type(op)(op.row, {"opselZ": 1})


@pytest.mark.parametrize(
    ("params", "error", "fix"),
    [
        ("16x16x16, (i8, i8) -> i32, signA = yes", ParseError, "write a number, e.g. signA = 1"),
        ("16x16x16, (f16, f16) -> f32, signA = 1", AtomError, "its flags: none"),
        ("16x16x16, (f16, f16) -> f32, wave = 16", ParseError, "use one of: wave = 32, wave = 64"),
        ("16x16x16, (f16, f16) -> f32, clip = 1", ParseError, "after the first parameters: wave = "),
        ("16x16x16, (f64, f64) -> f64", AtomError, r"16x16x16: \(f16, f16\) -> f32"),
    ],
)
def test_broken_flags_and_variants_are_errors(params: str, error: type[Exception], fix: str) -> None:
    with pytest.raises(error, match=fix):
        parse_payload("fly_rocdl.gfx11.wmma", params)


def test_the_usual_variant_may_be_written_and_words_for_booleans_too() -> None:
    plain = parse_payload("fly_rocdl.gfx11.wmma", "16x16x16, (i8, i8) -> i32, wave = 32, signA = true, signB = false")
    assert str(plain) == "!fly_rocdl.gfx11.wmma<16x16x16, (i8, i8) -> i32, signA = 1>"
    wide = parse_payload("fly_rocdl.gfx1250.wmma_scale", "16x16x128, (f8E5M2, f8E5M2) -> f32, blockSize = 16")
    assert isinstance(wide, Stateful) and [f.type for f in wide.state] == [t.I64, t.I64]


# --- what reaches LLVM ----------------------------------------------------------------------------


def constants(args: list[LLValue]) -> list[int]:
    return [int(arg.const) for arg in args if arg.const is not None]


@pytest.mark.parametrize(
    ("target", "types", "shape", "flags", "want"),
    [
        ("gfx1100", ("i8", "i8", "i32"), (16, 16, 16), {"signA": 1, "clamp": 1}, [1, 0, 1]),
        ("gfx1201", ("i4", "i4", "i32"), (16, 16, 32), {"signB": 1}, [0, 1, 0]),
        ("gfx1201", ("f16", "f16", "f16"), (16, 16, 16), {}, [0]),
        ("gfx1250", ("f16", "f16", "f32"), (16, 16, 32), {"negB": 1, "modC": 3, "reuseA": 1}, [0, 1, 3, 1, 0]),
        ("gfx1250", ("i8", "i8", "i32"), (16, 16, 64), {"signA": 1, "reuseB": 1, "clamp": 1}, [1, 0, 0, 1, 1]),
        ("gfx1250", ("f8E5M2", "f8E4M3FN", "f16"), (16, 16, 128), {"modC": 2}, [2, 0, 0]),
        ("gfx1250", ("f6E3M2FN", "f4E2M1FN", "f32"), (16, 16, 128), {"modC": 1}, [3, 4, 1]),
    ],
)
def test_wmma_flags_are_the_immediates_of_the_call(
    target: str, types: tuple[str, str, str], shape: tuple[int, int, int], flags: dict[str, int], want: list[int]
) -> None:
    op = find_wmma(*shape, *types, Target.parse(target), flags)
    assert constants(call(op, target)[1]) == want


def test_scaled_calls_hold_formats_selectors_and_scales() -> None:
    scales = value(ll.I32, "sa"), value(ll.I32, "sb")
    op = find_mfma_scale(16, 16, 128, "f8E5M2", "f4E2M1FN", Target.parse("gfx950"), opsel_a=2, opsel_b=3)
    name, args = call(op, "gfx950", *scales)
    assert name == "mfma.scale.f32.16x16x128.f8f6f4.v8i32.v4i32"
    assert constants(args) == [1, 4, 2, 3] and [args[6].text, args[8].text] == ["%sa", "%sb"]
    op2 = find_wmma_scale(16, 16, 128, "f6E2M3FN", block_size=16, opselB=1, modC=1, reuseA=1)
    name, args = call(op2, "gfx1250", value(ll.I64, "sa"), value(ll.I64, "sb"))
    assert name == "wmma.scale16.f32.16x16x128.f8f6f4.v8f32.v12i32.v12i32"
    assert constants(args) == [2, 2, 1, 0, 0, 1, 0, 1, 0] and [args[8].text, args[11].text] == ["%sa", "%sb"]


def test_two_constant_zero_scales_are_refused_because_llvm_drops_them() -> None:
    em = Recorder("gfx950")
    op = find_mfma_scale(32, 32, 64, "f4E2M1FN")
    a, b, c = (value(type_, name) for type_, name in zip(op.register_types(), "abc"))
    zero = em.const(ll.I32, 0)
    with pytest.raises(AtomError, match="for a factor of one set both to 127"):
        op.emit_atom_call_ssa(em, em.struct_of(zero, zero), a, b, c)
    op.emit_atom_call_ssa(em, em.struct_of(zero, em.const(ll.I32, 127)), a, b, c)


@pytest.mark.parametrize("modifier", range(4))
@pytest.mark.sim
def test_modifiers_of_c_negate_and_take_the_absolute_value(modifier: int) -> None:
    op = find_wmma(16, 16, 32, "f16", "f16", "f32", Target.parse("gfx1250"), {"modC": modifier})
    name, args = call(op, "gfx1250")
    c = np.arange(-128.0, 128.0, dtype=np.float32).reshape(1, 32, 8)
    zeros = np.zeros((1, 32, 16), np.float16)
    held = {"%a": zeros, "%b": zeros, "%c": c}
    got = matrix.evaluate(
        name,
        [arg.const if arg.const is not None else held[arg.text] for arg in args],
        wave_size=32,
        target=Target.parse("gfx1250"),
    )
    read = np.abs(c) if modifier & 2 else c
    np.testing.assert_array_equal(got, -read if modifier & 1 else read)


# --- state ----------------------------------------------------------------------------------------


def test_scales_have_no_default_and_say_what_they_are() -> None:
    for op in STATEFUL:
        if isinstance(op, FlaggedRowMma) and op.row.family in SCALED:
            assert [f.name for f in op.state] == ["scale_a", "scale_b"]
            assert op.state.defaults == (None, None)
    state = find_mfma_scale(16, 16, 128, "f8E4M3FN").state
    assert state.lltype.text == "{ i32, i32 }"
    with pytest.raises(StateError, match=r"127 is one(?s:.*)set it first: atom\.set_value\('scale_b', \.\.\.\)"):
        state.check_set([1, None])


@pytest.mark.parametrize("op", STATEFUL, ids=lambda op: op.name)
def test_every_state_is_a_literal_struct_that_refuses_unknown_fields_and_types(op: Stateful) -> None:
    assert op.state.lltype.text == "{ " + ", ".join(str(f.type) for f in op.state) + " }"
    with pytest.raises(StateError, match="its fields: "):
        op.state.check_value("nonsense", t.I32)
    for field in op.state:
        assert op.state.check_value(field.name, field.type) is field
        with pytest.raises(StateError, match=f"pass an {field.type}, in {field.units}"):
            op.state.check_value(field.name, t.I16)


# --- gfx11 ----------------------------------------------------------------------------------------


@pytest.mark.sim
@pytest.mark.parametrize("op", gfx11_wmma.atoms(), ids=lambda op: op.name)
def test_copies_of_a_replicated_operand_must_agree(op: Wmma) -> None:
    assert op.row.replication == (op.row.wave // 16,) * 2
    name, args = call(op, "gfx1100")
    f = fragments(op)
    rng = np.random.default_rng(0)
    held = [
        probes.scatter(rng.integers(0, 2, (1, 1, 16, 16)).astype(float), f.table(which), f.lanes, count)
        for which, count in zip("ab", f.counts)
    ]
    held[0][0, 19, 3] = 1.0 - held[0][0, 19, 3]  # lane 3 holds the same element
    registers = [probes.pack(x, op.row.elements[0]) for x in held]
    slots = 2 if op.row.slots == 2 else 1
    c = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i32": np.int32}[op.row.elements[2]]
    values = iter([*registers, np.zeros((1, op.row.wave, 256 * slots // op.row.wave), c)])
    given = [arg.const if arg.const is not None else next(values) for arg in args]
    with pytest.raises(SimError, match=r"give lane l and lane l \+ 16 the same"):
        matrix.evaluate(name, given, wave_size=op.row.wave, target=Target.parse("gfx1100", op.row.wave))


def test_16_bit_accumulators_of_gfx11_are_spread_over_every_second_slot() -> None:
    op = find_wmma(16, 16, 16, "f16", "f16", "f16", Target.parse("gfx1100"))
    assert op.register_types()[2].text == "<8 x half>" and op.row.carriers[2].text == "<16 x half>"
    em = Recorder("gfx1100")
    a, b, c = (value(type_, name) for type_, name in zip(op.register_types(), "abc"))
    assert op.emit_atom_call_ssa(em, None, a, b, c).type.text == "<8 x half>"
    spread = ", ".join(f"i32 {i // 2}, i32 8" for i in range(0, 16, 2))
    gather = ", ".join(f"i32 {i}" for i in range(0, 16, 2))
    assert f"<16 x i32> <{spread}>" in em.text() and f"<8 x i32> <{gather}>" in em.text()


def test_gfx1250_has_one_row_for_each_pair_of_narrow_formats_and_none_of_disputed_order() -> None:
    rows = {op.row.elements for op in gfx1250_wmma.atoms() if op.shape_mnk == (16, 16, 128)}
    assert ("f6E2M3FN", "f4E2M1FN", "f32") in rows and ("f8E4M3FN", "f4E2M1FN", "f32") not in rows


def test_wmma_is_refused_where_there_is_none() -> None:
    with pytest.raises(TargetError, match=r"use fx.rocdl.MFMA"):
        find_wmma(16, 16, 16, "f16", "f16", None, Target.parse("gfx942"))


# --- asynchronous LDS copies ----------------------------------------------------------------------


@pytest.mark.parametrize("bits", [32, 96, 128])
def test_asynchronous_copies_emit_the_synchronous_intrinsics(bits: int) -> None:
    em = Recorder("gfx950")
    count = bits // 32
    lds = operand(t.F32, "shared", "lds", count)
    GlobalLoadAsyncLds(bits).emit_atom_call(em, None, operand(t.F32, "global", "p", count), lds, None)
    assert f"@llvm.amdgcn.global.load.lds(ptr addrspace(1) %p, ptr addrspace(3) %v0, i32 {bits // 8}" in em.text()
    em = Recorder("gfx950")
    state = em.struct_of(em.const(ll.I32, 3), em.const(ll.I32, 16))
    there = operand(t.F32, "buffer_desc", "r", count, offset="o")
    BufferLoadAsyncLds(bits).emit_atom_call(em, state, there, lds, value(ll.I1, "q"))
    head, _, behind = em.text().partition("then.")
    assert "readfirstlane" in head and f"i32 {bits // 8}, i32 %v1, i32 12, i32 16, i32 0)" in behind


@pytest.mark.parametrize("kind", [BufferLoadAsyncLds, GlobalLoadAsyncLds])
def test_asynchronous_copies_are_refused_by_width_place_and_chip(
    kind: type[BufferLoadAsyncLds] | type[GlobalLoadAsyncLds],
) -> None:
    with pytest.raises(AtomError, match=r"use 8, 16 or 32 bits; 96 or 128 on gfx950|use 32, 96 or 128"):
        kind(64)
    with pytest.raises(TargetError, match=r"copy through registers|buffer_copy_lds"):
        kind(128).check_target(Target.parse("gfx942"))
    space = "global" if kind is GlobalLoadAsyncLds else "buffer_desc"
    kind(128).check_operands(t.PtrType(t.F16, space), t.PtrType(t.F16, "shared"))
    with pytest.raises(AtomError, match="the destination in LDS"):
        kind(128).check_operands(t.PtrType(t.F16, space), t.PtrType(t.F16, "register"))
    with pytest.raises(AtomError, match="apply the swizzle to the source coordinates"):
        kind(128).check_operands(t.PtrType(t.F16, space), t.PtrType(t.F16, "shared", None, Swizzle(3, 3, 3)))
