"""Transposing loads: layouts against the published bit maps and the simulator's exchange, and through a kernel."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from flyllvm.atoms import all_rows
from flyllvm.atoms.rocdl.cdna4_lds_read_trans import LdsReadTrans
from flyllvm.atoms.rocdl.gfx12_global_load_tr import GlobalLoadTr
from flyllvm.atoms.rocdl.gfx1250_ds_load_tr import DsLoadTr
from flyllvm.atoms.rocdl.transpose import TransposeCopy
from flyllvm.codegen.options import Options
from flyllvm.compiler.pipeline import lower
from flyllvm.errors import AtomError, TargetError
from flyllvm.ir import types as t
from flyllvm.ir.builder import Builder
from flyllvm.ir.core import Kernel, Module
from flyllvm.ir.protocols import parse_payload
from flyllvm.layout import Layout, parse, size
from flyllvm.sim import matrix_transpose, simulate
from flyllvm.target import Target
from tests.sim import probes

COPIES = {
    (row["inst"], arch): row
    for row in json.loads((Path(__file__).parents[1] / "oracles" / "matrix-layouts.json").read_text())["copies"]
    for arch in row["arch"]
}
OPS = [op for op in all_rows() if isinstance(op, TransposeCopy)]
PAIRS = [(op, p) for op in OPS for p in op.targets]
# Rows in no published map: disputed ones, and those of a third-party measurement.
UNPUBLISHED = {("global_load_tr_b64", "gfx1200"), ("global_load_tr_b64", "gfx1201")}
PUBLISHED = [(op, p) for op, p in PAIRS if not op.row.assumed and (op.row.instructions[p], p) not in UNPUBLISHED]
ELEMENTS = {16: t.F16, 8: t.F8E4M3FN, 6: t.F6E2M3FN, 4: t.F4E2M1FN}


@pytest.mark.parametrize(("op", "processor"), PUBLISHED, ids=lambda x: x if isinstance(x, str) else x.name)
def test_layouts_are_the_published_bit_maps(op: TransposeCopy, processor: str) -> None:
    # The published table has gfx1250's name of the 16-bit global load for all chips.
    names = (op.row.instructions[processor], op.row.instructions[op.targets[-1]])
    row = next(COPIES[name, processor] for name in names if (name, processor) in COPIES)
    assert op.bit_layout_src == parse(row["src"]) and op.bit_layout_dst == parse(row["dst"])
    assert (size(op.thr_layout), op.bit_size, op.wave) == (row["lanes_per_group"], row["bits"], row["wave"])


def test_every_published_transposing_load_is_an_atom() -> None:
    ours = {(op.row.instructions[p].replace("_tr_b128", "_tr16_b128"), p) for op, p in PUBLISHED}
    assert ours == set(COPIES)


def test_the_8_bit_global_load_of_gfx12_is_the_one_that_was_measured() -> None:
    """Byte ``s`` of lane ``L`` on gfx1201, where lane ``L`` read bytes ``8*L`` and up of a tile."""
    op = GlobalLoadTr(8, 64)
    tile = np.arange(256, dtype=np.uint8)
    got = exchanged(op, tile.reshape(32, 8))
    for lane in range(32):
        for s in range(8):
            first = lane % 8 + 32 * (lane // 8 % 2) + 128 * (lane // 16)
            assert got[lane, s] == first + 8 * (s % 4) + 64 * (s // 4)


@pytest.mark.parametrize("make", [DsLoadTr, GlobalLoadTr])
@pytest.mark.parametrize(("granularity", "bits"), [(4, 64), (6, 96)])
def test_a_disputed_lane_map_must_be_written(make: type[TransposeCopy], granularity: int, bits: int) -> None:
    with pytest.raises(AtomError, match=f"contradict(?s:.*)write <{granularity}, {bits}, map = square> to assume"):
        make(granularity, bits)
    op = parse_payload(make.mnemonic, f"{granularity}, {bits}, map = square")
    assert op.params == f"{granularity}, {bits}, map = square"
    with pytest.raises(AtomError, match="no such load with a known lane map and map 'round'"):
        make(granularity, bits, "round")


@pytest.mark.sim
def test_the_simulator_warns_of_a_disputed_lane_map() -> None:
    text = """
define amdgpu_kernel void @k(ptr addrspace(1) %src, ptr addrspace(1) %dst) {
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %from = getelementptr <2 x i32>, ptr addrspace(1) %src, i32 %lane
  %got = call <2 x i32> @llvm.amdgcn.global.load.tr4.b64.v2i32(ptr addrspace(1) %from)
  %to = getelementptr <2 x i32>, ptr addrspace(1) %dst, i32 %lane
  store <2 x i32> %got, ptr addrspace(1) %to
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare <2 x i32> @llvm.amdgcn.global.load.tr4.b64.v2i32(ptr addrspace(1))
"""
    data = np.random.default_rng(3).integers(0, 256, (32, 8), dtype=np.uint8)
    out = np.zeros_like(data)
    args = [data.reshape(-1), out.reshape(-1)]
    report = simulate(text, kernel="k", grid=(1,), block=(32,), args=args, target=Target.parse("gfx1250"))
    assert any("gfx950's is assumed" in warning for warning in report.warnings)
    np.testing.assert_array_equal(out, exchanged(GlobalLoadTr(4, 64, "square"), data))


def exchanged(op: TransposeCopy, data: np.ndarray) -> np.ndarray:
    """What the layouts say each lane gets.  Shape: uint8 ``(lanes, bytes of a lane)``."""
    lanes = size(op.thr_layout)
    bits = np.unpackbits(data, axis=1, bitorder="little").reshape(-1, lanes * op.bit_size)
    table = probes.layout_table(str(op.bit_layout_dst))
    return np.packbits(bits[:, table].reshape(len(data), -1), axis=1, bitorder="little")


@pytest.mark.sim
@pytest.mark.parametrize(("op", "processor"), PAIRS, ids=lambda x: x if isinstance(x, str) else x.name)
def test_layouts_equal_the_simulators_exchange(op: TransposeCopy, processor: str) -> None:
    target = Target.parse(processor)
    load = matrix_transpose.prepare(op.intrinsic.removeprefix("llvm.amdgcn."), wave_size=op.wave, target=target)
    data = np.random.default_rng(0).integers(0, 256, (target.wave_size, op.bit_size // 8), dtype=np.uint8)
    np.testing.assert_array_equal(exchanged(op, data), load(data[None])[0])


@pytest.mark.sim
@pytest.mark.parametrize(("op", "processor"), PAIRS, ids=lambda x: x if isinstance(x, str) else x.name)
@pytest.mark.parametrize("ssa", [True, False], ids=["ssa", "memory"])
def test_a_kernel_reads_transposed(op: TransposeCopy, processor: str, ssa: bool) -> None:
    """Each lane loads its run of the tile; LDS loads go through LDS first."""
    target = Target.parse(processor)
    made = Kernel("k")
    made.attrs["known_block_size"] = (op.wave, 1, 1)
    elem = ELEMENTS[op.row.granularity]
    src, dst = (made.add_arg(t.PtrType(elem, "global", 16), name) for name in ("src", "dst"))
    count = op.bit_size // elem.bits
    with Builder(made, target) as b:
        lane = b.thread_id()
        start = b.index_mul(lane, count)
        held = b.alloca(elem, Layout(count, 1))
        plain = b.make_copy_atom(t.CopyAtomType(parse_payload("fly.universal_copy", str(op.bit_size)), elem.bits))
        source = b.make_view(b.add_offset(src, start), Layout(count, 1))
        if op.spaces[0][0] == "shared":
            lds = b.make_view(b.add_offset(b.shared(elem, op.wave * op.bit_size // 8, 16), start), Layout(count, 1))
            b.copy_atom_call(plain, source, held)
            b.copy_atom_call(plain, held, lds)
            b.barrier()
            source = lds
        b.copy_atom_call(b.make_copy_atom(t.CopyAtomType(op, elem.bits)), source, held)
        b.copy_atom_call(plain, held, b.make_view(b.add_offset(dst, start), Layout(count, 1)))
    module = Module()
    module.kernels.append(made)
    text = lower(module, target, Options(debug=False), ssa=ssa)
    data = np.random.default_rng(1).integers(0, 256, (op.wave, op.bit_size // 8), dtype=np.uint8)
    out = np.zeros_like(data)
    simulate(text, kernel="k", grid=(1,), block=(op.wave,), args=[data.reshape(-1), out.reshape(-1)], target=target)
    np.testing.assert_array_equal(out, exchanged(op, data))


def test_forms_without_a_known_lane_map_are_refused() -> None:
    with pytest.raises(
        AtomError, match=r"no such load with a known lane map(?s:.*)<16, 64>, <8, 64>, <6, 96>, <4, 64>"
    ):
        LdsReadTrans(4, 128)
    with pytest.raises(AtomError, match=r"<16, 128>, <8, 64>, <6, 96, map = square>, <4, 64, map = square>"):
        DsLoadTr(4, 128)
    with pytest.raises(TargetError, match=r"on gfx1201: <16, 128>, <8, 64>"):
        GlobalLoadTr(4, 64, "square").check_target(Target.parse("gfx1201"))
    with pytest.raises(TargetError, match="load plainly and exchange with lane moves"):
        LdsReadTrans(16, 64).check_target(Target.parse("gfx942"))


@pytest.mark.parametrize("params", ["", "16", "sixteen, 64", "16, 64, 3"])
def test_a_broken_spelling_is_an_error(params: str) -> None:
    with pytest.raises(Exception, match=r"write <16, 64>|after the first parameters"):
        parse_payload(LdsReadTrans.mnemonic, params)


def test_the_width_of_an_element_may_be_spelled_in_bits() -> None:
    assert parse_payload(LdsReadTrans.mnemonic, "16-bit, 64") == LdsReadTrans(16, 64)


@pytest.mark.parametrize(("op", "src"), [(LdsReadTrans(16, 64), "global"), (GlobalLoadTr(16, 128), "shared")])
def test_memory_of_another_space_is_refused(op: TransposeCopy, src: str) -> None:
    with pytest.raises(AtomError, match=f"the source is in {op.spaces[0][0]} memory, the destination in registers"):
        op.check_operands(t.PtrType(t.F16, src), t.PtrType(t.F16, "register"))
