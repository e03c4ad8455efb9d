"""Tensor copies of gfx1250: every bit of the descriptor, read back by the field table of the manual."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence

import pytest

from flyllvm.atoms.rocdl.gfx1250_tdm import Tdm, atoms
from flyllvm.errors import AtomError, FlyError, StateError, TargetError
from flyllvm.ir import lltype as ll, types as t
from flyllvm.ir.lltype import LLType
from flyllvm.ir.protocols import LLValue, parse_payload
from flyllvm.layout import Swizzle
from flyllvm.target import Target
from tests.atoms.emitter import Recorder, operand, value

LDS, FAR = 0x1240, 0x12_3456_7890_ABCD & ((1 << 57) - 1)
#: Fields as group, lowest bit and width.  Source: CDNA5 ISA manual, tables 62 to 65.
FIELDS = {
    "count": (0, 0, 2), "lds_addr": (0, 32, 32), "global_addr": (0, 64, 57), "type": (0, 126, 2),
    "workgroup_mask": (1, 0, 16), "data_size": (1, 16, 2), "barrier": (1, 18, 1), "pad_enable": (1, 20, 1),
    "timeout": (1, 21, 1), "pad_interval": (1, 22, 3), "pad_amount": (1, 25, 7),
    "tensor_dim0": (1, 48, 32), "tensor_dim1": (1, 80, 32), "tile_dim0": (1, 112, 16), "tile_dim1": (1, 128, 16),
    "tile_dim2": (1, 144, 16), "tensor_dim0_stride": (1, 160, 48), "tensor_dim1_stride": (1, 208, 48),
    "tensor_dim2": (2, 0, 32), "tensor_dim3": (2, 32, 32), "tensor_dim2_stride": (2, 64, 48), "tile_dim3": (2, 112, 16),
    "tensor_dim3_stride": (3, 0, 48), "tensor_dim4": (3, 48, 32), "tile_dim4": (3, 80, 16), "reserved": (3, 96, 32),
}  # fmt: skip


class Folding(Recorder):
    """Computes with constants: pointers are numbers, so is the wave's id."""

    def __init__(self, wave_id: int = 0) -> None:
        super().__init__("gfx1250")
        self.wave_id = wave_id
        self.vectors: dict[str, list[int]] = {}
        self.call: tuple[str, list[list[int]]] = ("", [])

    def binary(self, op: str, a: LLValue, b: LLValue, flags: str = "") -> LLValue:
        assert isinstance(a.const, int) and isinstance(b.const, int) and a.type is b.type
        fold = {
            "mul": operator.mul, "add": operator.add, "sub": operator.sub, "and": operator.and_, "or": operator.or_,
            "shl": operator.lshift, "lshr": operator.rshift,
        }  # fmt: skip
        return self.const(a.type, fold[op](a.const, b.const) & (1 << a.type.bits) - 1)

    def cast(self, op: str, value: LLValue, type: LLType) -> LLValue:
        number = {"%near": LDS, "%far": FAR}.get(value.text, value.const)
        assert isinstance(number, int)
        return self.const(type, number & (1 << type.bits) - 1)

    def poison(self, type: LLType) -> LLValue:
        self.vectors["poison"] = []
        return LLValue(type, "poison")

    def insert_element(self, value: LLValue, element: LLValue, index: int) -> LLValue:
        assert isinstance(element.const, int) and len(self.vectors[value.text]) == index
        name = f"%g{len(self.vectors)}"
        self.vectors[name] = [*self.vectors[value.text], element.const]
        return LLValue(value.type, name)

    def intrinsic(self, name: str, result: LLType, args: Sequence[LLValue]) -> LLValue:
        if name == "amdgcn.wave.id":
            return self.const(result, self.wave_id)
        if name == "smax.i32":
            first, second = (a.const - (1 << 32) * (a.const >> 31) for a in args if isinstance(a.const, int))
            return self.const(result, max(first, second))
        self.call = (name, [self.vectors[a.text] for a in args[:-1]])
        return LLValue(result, "")


def descriptor(op: Tdm, wave_id: int = 0, *, store: bool = False, **state: int) -> tuple[str, dict[str, int]]:
    """The instruction and the fields of its descriptor."""
    em = Folding(wave_id)
    fields = [em.const(f.type.storage, state.pop(f.name, f.default if f.default is not None else 0)) for f in op.state]
    assert not state
    far, near = operand(op.elem, "global", "far"), operand(op.elem, "shared", "near")
    op.emit_atom_call(em, em.struct_of(*fields), *((near, far) if store else (far, near)), None)
    name, groups = em.call
    packed = [sum(word << 32 * i for i, word in enumerate(group)) for group in groups]
    return name, {
        field: packed[group] >> low & (1 << width) - 1
        for field, (group, low, width) in FIELDS.items()
        if group < len(packed)
    }


def test_a_descriptor_of_five_dimensions_holds_every_extent_and_stride() -> None:
    extents = [100_001, 70_002, 66_003, 65_537, 1_000_000]
    strides = [(1 << 47) + 5, (1 << 40) + 6, (1 << 33) + 7, (1 << 20) + 8]
    state = {f"extent_{i}": n for i, n in enumerate(extents)} | {f"stride_{i}": n for i, n in enumerate(strides)}
    name, got = descriptor(Tdm((2, 3, 5, 7, 11), "f16"), **state, workgroup_mask=0x8421, imm_offset=0x40)
    assert name == "amdgcn.tensor.load.to.lds"
    assert (got["count"], got["type"], got["lds_addr"], got["global_addr"]) == (1, 2, LDS, FAR + 0x40)
    assert [got[f"tensor_dim{i}"] for i in range(5)] == extents[::-1]
    assert [got[f"tile_dim{i}"] for i in range(5)] == [11, 7, 5, 3, 2]
    assert [got[f"tensor_dim{i}_stride"] for i in range(4)] == strides[::-1]
    assert (got["workgroup_mask"], got["data_size"], got["pad_enable"], got["reserved"]) == (0x8421, 1, 0, 0)


@pytest.mark.parametrize("tile", [(96,), (64, 32)])
def test_up_to_two_dimensions_take_two_groups(tile: tuple[int, ...]) -> None:
    strides = {"stride_0": 4096} if len(tile) > 1 else {}
    name, got = descriptor(Tdm(tile, "f32"), store=True, extent_0=500, **strides)
    assert name == "amdgcn.tensor.store.from.lds.d2" and "tensor_dim2" not in got
    assert got["tile_dim0"] == tile[-1] and got["tile_dim1"] == (tile[0] if len(tile) > 1 else 0)
    assert got["tensor_dim0"] == (500 if len(tile) == 1 else (1 << 31) - 1)
    assert got["tensor_dim0_stride"] == strides.get("stride_0", 0) and got["data_size"] == 2


@pytest.mark.parametrize(("elem", "size"), [("i8", 0), ("bf16", 1), ("i32", 2), ("f64", 3)])
def test_the_element_size_is_its_logarithm(elem: str, size: int) -> None:
    assert descriptor(Tdm((8, 8), elem), stride_0=8)[1]["data_size"] == size


def test_padding_and_flags_are_the_published_words() -> None:
    assert Tdm((64, 64), "f16", pad_interval=64, pad_amount=8).config_word() == 118554624
    assert Tdm((64, 64), "f16", barrier=True, timeout=True).config_word() == 2424832
    _, got = descriptor(Tdm((64, 64), "f16", pad_interval=64, pad_amount=8), stride_0=64)
    assert (got["pad_enable"], got["pad_interval"], got["pad_amount"]) == (1, 4, 3)


def test_a_call_that_would_arrive_at_an_unnamed_barrier_is_refused() -> None:
    memory = t.PtrType(t.F16, "global"), t.PtrType(t.F16, "shared")
    Tdm((64, 64), "f16").check_operands(*memory)
    with pytest.raises(AtomError, match=r"arrive at the LDS barrier at address 0.*\n.*s_wait_tensorcnt"):
        Tdm((64, 64), "f16", barrier=True).check_operands(*memory)


@pytest.mark.parametrize("wave_id", range(6))
def test_warps_share_the_rows_and_what_is_left_of_the_tensor(wave_id: int) -> None:
    op = Tdm((64, 32), "f16", warps=4, pad_interval=32, pad_amount=4)
    _, got = descriptor(op, wave_id, stride_0=1000, extent_0=40, extent_1=20)
    part = wave_id % 4
    assert (got["tile_dim1"], got["tile_dim0"]) == (16, 32)
    assert got["global_addr"] == FAR + part * 16 * 1000 * 2
    assert got["lds_addr"] == LDS + part * 16 * (32 + 4) * 2
    assert (got["tensor_dim1"], got["tensor_dim0"]) == (max(0, 40 - 16 * part), 20)


def test_a_padded_store_widens_the_row_and_ends_it_at_the_extent() -> None:
    op = Tdm((64, 32), "f16", 4, 32, 8)
    _, got = descriptor(op, 1, store=True, stride_0=1000, extent_0=40, extent_1=100)
    assert (got["pad_enable"], got["pad_interval"], got["pad_amount"]) == (0, 0, 0)
    assert (got["tile_dim1"], got["tile_dim0"]) == (16, 40)
    assert (got["tensor_dim1"], got["tensor_dim0"]) == (24, 32)
    assert descriptor(op, store=True, stride_0=1000, extent_1=20)[1]["tensor_dim0"] == 20


def test_an_extent_below_zero_is_none_left() -> None:
    _, got = descriptor(Tdm((64, 32), "f16"), extent_0=(1 << 32) - 8, extent_1=3, stride_0=64)
    assert (got["tensor_dim1"], got["tensor_dim0"]) == (0, 3)


def test_run_time_words_are_made_uniform() -> None:
    em = Recorder("gfx1250")
    op = Tdm((64, 32), "f16")
    state = em.struct_of(*(value(f.type.storage, f.name) for f in op.state))
    op.emit_atom_call(em, state, operand(t.F16, "global", "far"), operand(t.F16, "shared", "near"), value(ll.I1, "p"))
    names = {re.search(r"i\d+ (%\w+)\)", line).group(1) for line in em.lines if "readfirstlane" in line}  # type: ignore[union-attr]
    assert {"%extent_0", "%extent_1", "%stride_0", "%imm_offset", "%workgroup_mask"} <= names
    head, _, behind = em.text().partition("then.")
    assert "readfirstlane" not in behind and "tensor.load.to.lds.d2" in behind and "tensor" not in head


@pytest.mark.parametrize("op", atoms(), ids=lambda op: op.name)
def test_the_state_has_extents_strides_mask_and_offset(op: Tdm) -> None:
    rank = len(op.tile)
    names = [f.name for f in op.state]
    assert names == [
        "workgroup_mask", *(f"extent_{i}" for i in range(rank)), *(f"stride_{i}" for i in range(rank - 1)), "imm_offset"
    ]  # fmt: skip
    defaults = dict(zip(names, op.state.defaults))
    assert defaults["workgroup_mask"] == defaults["imm_offset"] == 0 and defaults["extent_0"] == 2**31 - 1
    if rank > 1:
        with pytest.raises(StateError, match=r"set it first: atom.set_value.'stride_0'"):
            op.state.check_set(list(op.state.defaults))


def test_every_parameter_is_spelled_and_read_back() -> None:
    op = Tdm((64, 32), "f16", 4, 32, 8, "nt", True, True)
    assert op.params == ("64x32, f16, warps = 4, padInterval = 32, padAmount = 8, cache = nt, barrier = 1, timeout = 1")
    assert parse_payload(Tdm.mnemonic, op.params) == op
    assert parse_payload(Tdm.mnemonic, "64x32, f16, barrier = true") == Tdm((64, 32), "f16", barrier=True)


@pytest.mark.parametrize(
    ("params", "fix"),
    [
        ("64x32", "write !fly_rocdl.gfx1250.tdm<64x32, f16>"),
        ("64y32, f16", "write !fly_rocdl.gfx1250.tdm<64x32, f16>"),
        ("64x32, f4E2M1FN", "elements of 1, 2, 4 or 8 bytes"),
        ("1x2x3x4x5x6, f16", "1 to 5 extents"),
        ("70000x2, f16", "1 to 65535 elements"),
        ("64x32, f16, warps = 3", "a power of two that divides"),
        ("6x32, f16, warps = 4", "a power of two that divides"),
        ("64x32, f16, warps = two", "write a number, e.g. warps = 1"),
        ("64x32, f16, padInterval = 32", "give both, in elements, or none"),
        ("64x32, f16, padInterval = 48, padAmount = 8", "the interval a power of two"),
        ("64x32, f16, padInterval = 32, padAmount = 3", "whole dwords"),
        ("64x32, f16, padInterval = 2, padAmount = 8", "an interval of 2 to 256 dwords"),
        ("64x32, f16, padInterval = 64, padAmount = 512", "an amount of 1 to 128"),
        ("3x32, f16, padInterval = 64, padAmount = 8", "a whole number of intervals for each wave"),
        ("64x32, f16, pad = 1", "after the first parameters: warps = "),
    ],
)
def test_what_the_descriptor_cannot_hold_is_refused(params: str, fix: str) -> None:
    with pytest.raises(FlyError, match=fix):
        parse_payload(Tdm.mnemonic, params)


def test_operands_and_chips_are_checked() -> None:
    op = Tdm((64, 32), "f16")
    far, near = t.PtrType(t.F16, "global"), t.PtrType(t.F16, "shared")
    op.check_operands(far, near)
    op.check_operands(near, far)
    with pytest.raises(AtomError, match="one side is global, the other shared"):
        op.check_operands(far, t.PtrType(t.F16, "register"))
    with pytest.raises(AtomError, match="plain memory of f16: use padding"):
        op.check_operands(far, t.PtrType(t.F16, "shared", None, Swizzle(3, 3, 3)))
    with pytest.raises(AtomError, match="plain memory of f16"):
        op.check_operands(t.PtrType(t.F32, "global"), near)
    with pytest.raises(AtomError, match="padInterval = 32: a store cannot skip space inside a row"):
        Tdm((64, 32), "f16", 1, 16, 8).check_operands(near, far)
    Tdm((64, 32), "f16", 1, 16, 8).check_operands(far, near)
    with pytest.raises(TargetError, match="gfx950 has no tensor data mover"):
        op.check_target(Target.parse("gfx950"))
