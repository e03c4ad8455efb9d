"""Buffer descriptors, masked accesses and LDS, where users of such compilers met wrong results."""

from __future__ import annotations

import re

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm import simulate
from flyllvm.compiler.kernel_cache import static_lds_bytes
from flyllvm.errors import LaunchError
from flyllvm.target import CHIPS

from ..expr.kernels import Tracing

pytestmark = pytest.mark.sim
BASE = fx.PointerType(fx.Int32, "global", 16)


@flyc.kernel(known_block_size=(64, 1, 1))
def masked(x: fx.Tensor, y: fx.Tensor, soffset: fx.Int32):
    i = fx.thread_idx.x
    atom = fx.make_copy_atom(fx.rocdl.BufferCopy(32), fx.Float32).set_value("soffset", soffset)
    held, runs = fx.make_rmem_tensor(1, fx.Float32), fx.make_rmem_tensor(1, fx.Boolean)
    held.fill(-7.0)
    runs[0] = i != 5
    fx.copy(atom, fx.rocdl.make_buffer_tensor(x).at(i, fx.make_layout(1, 1)), held, pred=runs)
    y[i] = held[0]


@pytest.mark.parametrize("soffset_bytes", [0, 4, 4096])
def test_a_masked_lane_has_its_alternative_whatever_the_uniform_offset_is(soffset_bytes: int) -> None:
    x, y = np.arange(2048, dtype=np.float32), np.zeros(64, np.float32)
    artifact = flyc.compile(masked, "f32[2048]", "f32[64]", fx.Int32, arch="gfx942", stop_after="llvm")
    artifact.simulate(x, y, soffset_bytes // 4, grid=(1, 1, 1))
    want = np.arange(64, dtype=np.float32) + soffset_bytes // 4
    want[5] = -7
    np.testing.assert_array_equal(y, want)


@flyc.kernel(known_block_size=(64, 1, 1))
def short(x: fx.Tensor, y: fx.Tensor):
    i = fx.thread_idx.x
    y[i] = fx.rocdl.raw_ptr_buffer_load(fx.Int32, fx.rocdl.make_buffer_ptr(x.iter, 40), i * 4)


@pytest.mark.parametrize("arch", [name for name, chip in CHIPS.items() if chip.family != "host"])
def test_the_descriptor_of_every_chip_ends_where_it_should(arch: str) -> None:
    x, y = np.arange(1, 65, dtype=np.int32), np.zeros(64, np.int32)
    artifact = flyc.compile(short, "i32[64]", "i32[64]", arch=arch, stop_after="llvm")
    artifact.simulate(x, y, grid=(1, 1, 1))
    np.testing.assert_array_equal(y, np.where(np.arange(64) < 10, x, 0))


def test_a_descriptor_takes_a_64_bit_base_for_each_part() -> None:
    with Tracing() as k:
        weights = fx.TensorSpec(fx.Int8, (128, 72 << 20)).declare(k.kernel, "weights", {})
        part = fx.rocdl.make_buffer_tensor(weights[k.arg(fx.Int32), None])
        (made,) = [op for op in k.kernel.walk() if op.name == "fly.make_ptr"]
        base, records = made.operands[0], made.operands[2]
        assert base.op is not None and base.op.name == "fly.add_offset" and base.op.operands[1].width == 64
        assert records.static_value() == 72 << 20
        assert part[k.arg(fx.Int32)].ir_value().op.name == "fly.ptr.load"


@flyc.kernel(known_block_size=(64, 1, 1))
def from_table(table: fx.Tensor, y: fx.Tensor, uniform: fx.Constexpr[bool]):
    i = fx.thread_idx.x
    address = fx.readfirstlane(table[i // 64]) if uniform else table[i]
    y[i] = fx.rocdl.raw_ptr_buffer_load(fx.Int32, fx.rocdl.make_buffer_ptr(fx.inttoptr(BASE, address), 64))


@pytest.mark.llvm
def test_a_base_read_uniformly_makes_no_loop_over_the_lanes() -> None:
    def loops(uniform: bool) -> bool:
        artifact = flyc.compile(from_table, "i64[64]", "i32[64]", arch="gfx942", constants={"uniform": uniform})
        return re.search(r"s_cbranch_execn?z", artifact.assembly) is not None

    assert loops(False) and not loops(True)


@flyc.kernel(known_block_size=(64, 1, 1))
def of_two(x: fx.Tensor, y: fx.Tensor, uniform: fx.Constexpr[bool]):
    i = fx.thread_idx.x
    start = x.iter + (fx.readfirstlane(i) if uniform else i % 2 * 16)
    y[i] = fx.rocdl.raw_ptr_buffer_load(fx.Int32, fx.rocdl.make_buffer_ptr(start, 64))


@pytest.mark.parametrize("uniform", [True, False])
def test_a_descriptor_that_differs_between_lanes_is_reported(uniform: bool) -> None:
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    artifact = flyc.compile(
        of_two, "i32[64]", "i32[64]", arch="gfx942", stop_after="llvm", constants={"uniform": uniform}
    )
    report = artifact.simulate(x, y, grid=(1, 1, 1), checks="all")
    said = [text for text in report.warnings if "the descriptor differs between lanes" in text]
    assert len(said) == (0 if uniform else 1)
    np.testing.assert_array_equal(y, 0 if uniform else np.arange(64) % 2 * 16)


@flyc.kernel(known_block_size=(64, 1, 1))
def both_kinds(y: fx.Tensor):
    i = fx.thread_idx.x
    fixed, given = fx.shared_memory(fx.Int32, 64), fx.get_dyn_shared(fx.Int32)
    for part in fx.range_constexpr(4):
        given[i + 64 * part] = i + 64 * part
    fixed[i] = -1 - i
    fx.barrier()
    y[i] = fixed[63 - i]
    for part in fx.range_constexpr(4):
        y[64 + 64 * part + i] = given[64 * part + 63 - i]
    y[320 + i] = fx.ptrtoint(given)


@pytest.mark.llvm
def test_static_and_dynamic_lds_do_not_overlap() -> None:
    artifact = flyc.compile(both_kinds, "i32[384]", arch="gfx942")
    y = np.zeros(384, np.int32)
    artifact.simulate(y, grid=(1, 1, 1), dynamic_lds_bytes=1024)
    backwards = np.arange(64)[::-1]
    np.testing.assert_array_equal(y[:64], -1 - backwards)
    np.testing.assert_array_equal(y[64:320].reshape(4, 64), backwards + 64 * np.arange(4)[:, None])
    # The place that LLVM promises is a multiple of 1024 bytes, also behind 256 bytes of another allocation.
    assert (y[320:] > 0).all() and (y[320:] % 1024 == 0).all()
    assert artifact.code_object.kernels["both_kinds"].lds_bytes == 1024 == static_lds_bytes(artifact.llvm_ir)


READS_SIZE = """
@given = external addrspace(3) global [0 x i8], align 16
@fixed = internal addrspace(3) global [256 x i8] poison, align 16

define amdgpu_kernel void @k(ptr addrspace(1) %y) {
  %hidden = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %p = getelementptr i8, ptr addrspace(4) %hidden, i64 120
  %n = load i32, ptr addrspace(4) %p, align 4
  store i32 %n, ptr addrspace(1) %y, align 4
  ret void
}
"""


def test_a_kernel_that_asks_is_told_the_dynamic_size_alone() -> None:
    y = np.zeros(1, np.int32)
    simulate(READS_SIZE, kernel="k", grid=1, block=1, args=[y], target="gfx942", dynamic_lds_bytes=1024)
    assert y[0] == 1024


def test_the_padding_in_front_of_dynamic_lds_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    y, most = np.zeros(384, np.int32), CHIPS["gfx942"].lds_bytes - 1024
    both_kinds(y).launch(block=64, smem=most, arch="gfx942")
    with pytest.raises(LaunchError, match=f"at most {most} bytes"):
        both_kinds(y).launch(block=64, smem=most + 768, arch="gfx942")
    artifact = flyc.compile(both_kinds, "i32[384]", arch="gfx942", stop_after="llvm")
    artifact.simulate(y, grid=(1, 1, 1), dynamic_lds_bytes=most)
    with pytest.raises(LaunchError, match="needs 66304 bytes of LDS, gfx942 has 65536"):
        artifact.simulate(y, grid=(1, 1, 1), dynamic_lds_bytes=most + 768)


@pytest.mark.llvm
@pytest.mark.parametrize("arch", ["gfx942", "gfx1201", "gfx1250"])
def test_the_words_of_a_descriptor_are_those_of_the_chip(arch: str) -> None:
    assembly = flyc.compile(short, "i32[64]", "i32[64]", arch=arch).assembly
    constants = {
        int(n, 0) & 0xFFFFFFFF for n in re.findall(r"s_movk?_(?:b32|i32|b64) s\S+, (0x\w+|-?\d+)$", assembly, re.M)
    }
    if arch == "gfx1250":
        # 40 records start at bit 57 of 128: seven bits of them share a word with the base.
        assert CHIPS[arch].buffer_flags < 16
        assert re.search(r"s_\w+ s\S+,.* 0x50000000", assembly) is not None
    else:
        assert {40, CHIPS[arch].buffer_flags} <= constants
