"""Loads, stores, atomics, buffers, DMA and arguments, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flyllvm.errors import LaunchError, SimError
from flyllvm.sim import UnsupportedError, check_module, parse_module, simulate
from tests.sim.kernels import FENCED_BARRIER, LDS, STORE_OUT, kernel, line_of

pytestmark = pytest.mark.sim
BARE = "call void @llvm.amdgcn.s.barrier()\n"


def _run(body: str, args: list[Any], params: str, module: str = "", block: int = 64, **kw: Any) -> Any:
    return simulate(kernel(body, params, module), grid=1, block=block, args=args, source_name="k.ll", **kw)


# ---- types in memory


@pytest.mark.parametrize(
    ("t", "dtype", "count"),
    [("i8", np.uint8, 1), ("<3 x i32>", np.uint32, 4), ("<8 x i16>", np.uint16, 8), ("<32 x half>", np.float16, 32),
     ("double", np.float64, 1), ("<2 x i64>", np.uint64, 2), ("{ i32, <2 x half>, [2 x i16] }", np.uint32, 3)],
)  # fmt: skip
def test_values_of_every_shape_are_copied(t: str, dtype: Any, count: int) -> None:
    source = np.random.default_rng(0).integers(0, 100, (64, count)).astype(dtype)
    target = np.zeros_like(source)
    body = f"""
    %p = getelementptr {t}, ptr addrspace(1) %in, i32 %t
    %q = getelementptr {t}, ptr addrspace(1) %out, i32 %t
    %v = load {t}, ptr addrspace(1) %p, align 1
    store {t} %v, ptr addrspace(1) %q, align 1
    ret void"""
    _run(body, [source, target], "ptr addrspace(1) %in, ptr addrspace(1) %out")
    want = source.copy()
    if t == "<3 x i32>":
        want[:, 3] = 0
    assert np.array_equal(target, want)


def test_booleans_and_odd_integers_in_memory() -> None:
    out = np.full(64 * 4, 0xFF, np.uint8)
    body = """
    %c = icmp ult i32 %t, 9
    %x = trunc i32 %t to i24
    %n = sub i24 0, %x
    %o = mul i32 %t, 4
    %p = getelementptr i8, ptr addrspace(1) %out, i32 %o
    %q = getelementptr i8, ptr addrspace(1) %p, i32 3
    store i24 %n, ptr addrspace(1) %p, align 1
    store i1 %c, ptr addrspace(1) %q, align 1
    ret void"""
    _run(body, [out], "ptr addrspace(1) %out")
    words = out.view(np.uint32)
    t = np.arange(64)
    assert np.array_equal(words & 0xFFFFFF, -t & 0xFFFFFF)
    assert np.array_equal(words >> 24, (t < 9).astype(np.uint32))


def test_bfloat_arithmetic_rounds_to_nearest_even() -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=64).astype(ml_dtypes.bfloat16) for _ in range(2))
    out = np.zeros(64, ml_dtypes.bfloat16)
    body = """
    %pa = getelementptr bfloat, ptr addrspace(1) %a, i32 %t
    %pb = getelementptr bfloat, ptr addrspace(1) %b, i32 %t
    %po = getelementptr bfloat, ptr addrspace(1) %o, i32 %t
    %x = load bfloat, ptr addrspace(1) %pa
    %y = load bfloat, ptr addrspace(1) %pb
    %z = fmul bfloat %x, %y
    %s = fadd bfloat %z, 1.0
    store bfloat %s, ptr addrspace(1) %po
    ret void"""
    _run(body, [a, b, out], "ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %o")
    assert np.array_equal(out, a * b + ml_dtypes.bfloat16(1))


def test_wide_integers_are_exact() -> None:
    out = np.zeros((64, 2), np.uint64)
    body = """
    %x = zext i32 %t to i128
    %a = shl i128 %x, 100
    %b = sub i128 %a, 1
    %c = mul i128 %b, 3
    %p = getelementptr i128, ptr addrspace(1) %out, i32 %t
    store i128 %c, ptr addrspace(1) %p, align 8
    ret void"""
    _run(body, [out], "ptr addrspace(1) %out")
    for t in range(64):
        want = (((t << 100) - 1) * 3) % (1 << 128)
        assert [int(w) for w in out[t]] == [want & (2**64 - 1), want >> 64]


def test_constant_tables_and_stack_arrays() -> None:
    out = np.zeros(64, np.uint32)
    body = """
    %a = alloca [4 x i32], align 4, addrspace(5)
    %i = and i32 %t, 3
    %j = xor i32 %i, 1
    %p = getelementptr [4 x i32], ptr addrspace(5) %a, i32 0, i32 %i
    store i32 %t, ptr addrspace(5) %p, align 4
    %q = getelementptr [4 x i32], ptr addrspace(5) %a, i32 0, i32 %j
    store i32 100, ptr addrspace(5) %q, align 4
    %x = load i32, ptr addrspace(5) %p, align 4
    %pt = getelementptr [4 x i32], ptr addrspace(4) @table, i32 0, i32 %i
    %y = load i32, ptr addrspace(4) %pt, align 4
    %v = add i32 %x, %y
    """ + STORE_OUT.format(value="%v")
    module = "@table = internal addrspace(4) constant [4 x i32] [i32 1000, i32 2000, i32 3000, i32 4000]\n"
    _run(body, [out], "ptr addrspace(1) %out", module)
    t = np.arange(64)
    assert np.array_equal(out, t + 1000 * (t % 4 + 1))


def test_flat_pointers_reach_lds_and_global_memory() -> None:
    out = np.zeros(64, np.uint32)
    body = """
    %f = addrspacecast ptr addrspace(3) @lds to ptr
    %g = addrspacecast ptr addrspace(1) %out to ptr
    %low = icmp ult i32 %t, 32
    %s = select i1 %low, ptr %f, ptr %g
    %p = getelementptr i32, ptr %s, i32 %t
    store i32 %t, ptr %p, align 4
    %v = load i32, ptr %p, align 4
    """ + STORE_OUT.format(value="%v")
    _run(body, [out], "ptr addrspace(1) %out", LDS)
    assert np.array_equal(out, np.arange(64))


def test_memory_intrinsics() -> None:
    source, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    body = """
    %a = alloca [8 x i8], align 8, addrspace(5)
    call void @llvm.memset.p5.i32(ptr addrspace(5) %a, i8 1, i32 8, i1 false)
    %p = getelementptr i32, ptr addrspace(1) %in, i32 %t
    call void @llvm.memcpy.p5.p1.i32(ptr addrspace(5) %a, ptr addrspace(1) %p, i32 3, i1 false)
    %v = load i32, ptr addrspace(5) %a, align 4
    """ + STORE_OUT.format(value="%v")
    _run(body, [source, out], "ptr addrspace(1) %in, ptr addrspace(1) %out")
    assert np.array_equal(out, (source & 0xFFFFFF) | 0x01000000)


def test_lanes_copy_and_set_numbers_of_bytes_of_their_own() -> None:
    source, out = np.arange(64, dtype=np.uint32) + 1, np.zeros(64, np.uint32)
    body = """
    %n = urem i32 %t, 5
    %p = getelementptr i32, ptr addrspace(1) %in, i32 %t
    %q = getelementptr i32, ptr addrspace(1) %out, i32 %t
    call void @llvm.memset.p1.i32(ptr addrspace(1) %q, i8 -1, i32 %n, i1 false)
    %h = lshr i32 %n, 1
    call void @llvm.memcpy.p1.p1.i32(ptr addrspace(1) %q, ptr addrspace(1) %p, i32 %h, i1 false)
    ret void"""
    params = "ptr addrspace(1) %in, ptr addrspace(1) %out"
    _run(body, [source, out], params)
    length = np.arange(64) % 5
    set_, copied = (1 << 8 * length) - 1, (1 << 8 * (length // 2)) - 1
    assert np.array_equal(out, (set_ & ~copied) | (source & copied))
    with pytest.raises(SimError, match="reads 1 bytes out of bounds"):
        _run(body.replace("%h = lshr i32 %n, 1", "%h = add i32 %n, -1"), [source, out], params)


# ---- atomics


@pytest.mark.parametrize(
    ("operation", "operand", "want"),
    [("add", "%t", 64 * 63 // 2 + 5), ("sub", "1", 5 - 64), ("umax", "%t", 63), ("min", "-3", -3), ("or", "%t", 63 | 5),
     ("xor", "%t", 5), ("and", "4", 4), ("uinc_wrap", "9", (5 + 64) % 10), ("usub_sat", "1", 0), ("xchg", "%t", 63),
     ("nand", "1", -1 if 64 % 2 == 0 else 0)],
)  # fmt: skip
def test_global_atomics(operation: str, operand: str, want: int) -> None:
    cell, old = np.array([5], np.int32), np.zeros(64, np.int32)
    body = f'%v = atomicrmw {operation} ptr addrspace(1) %x, i32 {operand} syncscope("agent") monotonic\n'
    _run(body + STORE_OUT.format(value="%v"), [cell, old], "ptr addrspace(1) %x, ptr addrspace(1) %out")
    if operation == "nand":
        value = 5
        for _ in range(64):
            value = ~(value & 1)
        want = value
    assert int(cell[0]) == want
    assert old[0] == 5


def test_atomic_float_add_and_compare_exchange() -> None:
    cell, out = np.zeros(2, np.float32), np.zeros(64, np.uint32)
    body = """
    %o = atomicrmw fadd ptr addrspace(1) %x, float 1.5 syncscope("agent") monotonic
    %q = getelementptr i32, ptr addrspace(1) %x, i32 1
    %r = cmpxchg ptr addrspace(1) %q, i32 0, i32 %t syncscope("agent") monotonic monotonic
    %ok = extractvalue { i32, i1 } %r, 1
    %v = zext i1 %ok to i32
    """ + STORE_OUT.format(value="%v")
    _run(body, [cell, out], "ptr addrspace(1) %x, ptr addrspace(1) %out")
    assert cell[0] == 96.0
    assert list(np.flatnonzero(out)) == [0, 1]  # lane 0 writes 0 over 0


# ---- buffers

_RSRC = (
    "%r = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %in, i16 0, i64 %bytes, "
    "i32 159744)\n"
)
_BUFFER = "ptr addrspace(1) %in, ptr addrspace(1) %out, i64 %bytes"


def test_buffer_loads_past_the_end_give_zero_and_are_counted() -> None:
    source, out = np.arange(1, 65, dtype=np.uint32), np.full(64, 9, np.uint32)
    body = _RSRC + (
        "%o = shl i32 %t, 2\n"
        "%v = call i32 @llvm.amdgcn.raw.ptr.buffer.load.i32(ptr addrspace(8) %r, i32 %o, i32 0, i32 0)\n"
    )
    report = _run(body + STORE_OUT.format(value="%v"), [source, out, 40 * 4], _BUFFER)
    assert np.array_equal(out, np.where(np.arange(64) < 40, source, 0))
    assert report.clipped_lanes == 24
    assert "24  lanes clipped by the descriptor at k.ll:" in report.render()


def test_wide_buffer_loads_are_clipped_per_dword() -> None:
    source, out = np.arange(1, 257, dtype=np.uint32), np.zeros((64, 4), np.uint32)
    body = _RSRC + (
        "%o = shl i32 %t, 4\n"
        "%v = call <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8) %r, i32 %o, i32 0, i32 0)\n"
        "%po = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %t\nstore <4 x i32> %v, ptr addrspace(1) %po\n"
        "ret void"
    )
    _run(body, [source, out, 42 * 4], _BUFFER)
    assert np.array_equal(out.ravel(), np.where(np.arange(256) < 42, source, 0))


def test_buffer_stores_past_the_end_are_dropped() -> None:
    target = np.zeros(64, np.float16)
    body = _RSRC + (
        "%o = shl i32 %t, 1\n%h = uitofp i32 %t to half\n"
        "call void @llvm.amdgcn.raw.ptr.buffer.store.f16(half %h, ptr addrspace(8) %r, i32 %o, i32 2, i32 0)\nret void"
    )
    report = _run(body, [target, np.zeros(1), 20], _BUFFER)
    assert np.array_equal(target[1:10], np.arange(9))
    assert not target[10:].any() and report.clipped_lanes == 64 - 9


def test_descriptor_larger_than_its_buffer_is_found() -> None:
    body = _RSRC + (
        "%o = shl i32 %t, 2\n"
        "%v = call i32 @llvm.amdgcn.raw.ptr.buffer.load.i32(ptr addrspace(8) %r, i32 %o, i32 0, i32 0)\n"
    )
    with pytest.raises(SimError, match="reads 4 bytes out of bounds, at byte 160 of argument 0 %in"):
        _run(body + STORE_OUT.format(value="%v"), [np.zeros(40, np.uint32), np.zeros(64, np.uint32), 256], _BUFFER)


def test_structured_buffers_use_the_stride() -> None:
    source, out = np.arange(64 * 3, dtype=np.uint32), np.zeros(64, np.uint32)
    body = (
        "%r = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %in, i16 12, i64 %bytes, "
        "i32 159744)\n"
        "%v = call i32 @llvm.amdgcn.struct.ptr.buffer.load.i32(ptr addrspace(8) %r, i32 %t, i32 4, i32 0, i32 0)\n"
    )
    _run(body + STORE_OUT.format(value="%v"), [source, out, 50], _BUFFER)
    assert np.array_equal(out, np.where(np.arange(64) < 50, np.arange(64) * 3 + 1, 0))


def test_buffer_atomics_and_fat_pointers() -> None:
    cells, out = np.zeros(4, np.int32), np.zeros(64, np.int32)
    body = (
        _RSRC
        + """
    %i = and i32 %t, 7
    %o = shl i32 %i, 2
    %old = call i32 @llvm.amdgcn.raw.ptr.buffer.atomic.add.i32(i32 1, ptr addrspace(8) %r, i32 %o, i32 0, i32 0)
    %f = addrspacecast ptr addrspace(8) %r to ptr addrspace(7)
    %p = getelementptr i32, ptr addrspace(7) %f, i32 %i
    %v = load i32, ptr addrspace(7) %p, align 4
    """
        + STORE_OUT.format(value="%v")
    )
    _run(body, [cells, out, 16], _BUFFER)
    assert list(cells) == [8] * 4
    assert np.array_equal(out, np.where(np.arange(64) % 8 < 4, 8, 0))


def test_raw_access_through_a_descriptor_with_a_stride_is_refused() -> None:
    body = _RSRC.replace("i16 0", "i16 4") + (
        "%v = call i32 @llvm.amdgcn.raw.ptr.buffer.load.i32(ptr addrspace(8) %r, i32 0, i32 0, i32 0)\n"
    )
    with pytest.raises(SimError, match="make the descriptor with stride 0"):
        _run(body + STORE_OUT.format(value="%v"), [np.zeros(4, np.uint32), np.zeros(64, np.uint32), 16], _BUFFER)


# ---- DMA to LDS


def _dma(wait: str, name: str = "raw.ptr.buffer.load.lds", barrier: str = BARE) -> str:
    call = (
        f"call void @llvm.amdgcn.{name}(ptr addrspace(8) %r, ptr addrspace(3) %dst, i32 4, i32 %o, i32 0, i32 0, i32 0)"
        if "raw" in name else
        f"call void @llvm.amdgcn.{name}(ptr addrspace(1) %src, ptr addrspace(3) %dst, i32 4, i32 0, i32 0)"
    )  # fmt: skip
    return (
        _RSRC
        + f"""
    %o = shl i32 %t, 2
    %src = getelementptr i8, ptr addrspace(1) %in, i32 %o
    %base = shl i32 %w, 6
    %dst = getelementptr i32, ptr addrspace(3) @lds, i32 %base
    {call}
    {wait}
    {barrier}
    %m = sub i32 255, %t
    %q = getelementptr i32, ptr addrspace(3) @lds, i32 %m
    %v = load i32, ptr addrspace(3) %q, align 4
    """
        + STORE_OUT.format(value="%v")
    )


def _dma_args() -> list[Any]:
    return [np.arange(256, dtype=np.uint32) * 3, np.zeros(256, np.uint32), 1024]


@pytest.mark.parametrize("name", ["raw.ptr.buffer.load.lds", "global.load.lds", "load.to.lds.p1"])
def test_dma_to_lds_is_visible_to_other_waves_after_a_wait(name: str) -> None:
    wait = "call void @llvm.amdgcn.s.waitcnt(i32 3952)"  # vmcnt(0)
    args = _dma_args()
    _run(_dma(wait, name), args, _BUFFER, LDS, block=256)
    assert np.array_equal(args[1], args[0][::-1])
    args = _dma_args()
    _run(_dma("", name, FENCED_BARRIER), args, _BUFFER, LDS, block=256)
    assert np.array_equal(args[1], args[0][::-1])


@pytest.mark.parametrize("name", ["raw.ptr.buffer.load.lds", "global.load.lds"])
def test_dma_with_all_checks_gives_the_same_and_counts_as_a_read_of_global_memory(name: str) -> None:
    body, args = _dma("", name, FENCED_BARRIER), _dma_args()
    simulate(kernel(body, _BUFFER, LDS), grid=1, block=256, args=args, checks="all")
    assert np.array_equal(args[1], args[0][::-1])
    early = "%e = xor i32 %t, 64\n%pe = getelementptr i32, ptr addrspace(1) %in, i32 %e\n"
    early += "store i32 7, ptr addrspace(1) %pe\n"  # into the part of another wave
    with pytest.raises(SimError, match=rf"llvm.amdgcn.{name}.*race on byte .*not ordered with 'store i32 7"):
        simulate(kernel(early + body, _BUFFER, LDS), grid=1, block=256, args=_dma_args(), checks="all")


@pytest.mark.parametrize("wait", ["", "call void @llvm.amdgcn.s.waitcnt(i32 49279)"])
def test_dma_read_by_another_wave_without_a_wait_is_found(wait: str) -> None:
    text = kernel(_dma(wait), _BUFFER, LDS)
    with pytest.raises(SimError, match="LDS race") as caught:
        simulate(text, grid=1, block=256, args=_dma_args(), source_name="k.ll")
    assert str(caught.value).startswith(f"k.ll:{line_of(text, '%v = load')}: ")
    assert "wait for the DMA" in str(caught.value)


def test_partial_waits_complete_the_oldest_dma() -> None:
    """vmcnt(1) completes the first of two copies; vmcnt(2) none of them."""
    for outstanding, clean in ((1, True), (2, False)):
        wait = f"call void @llvm.amdgcn.s.waitcnt(i32 {3952 + outstanding})"
        source = "ptr addrspace(1) %src, ptr addrspace(3) %odst"
        second = f"call void @llvm.amdgcn.global.load.lds({source}, i32 4, i32 0, i32 0)"
        body = _dma(second + "\n" + wait, "global.load.lds").replace(
            "%dst = ", "%odst = getelementptr i32, ptr addrspace(3) @other, i32 %base\n    %dst = "
        )
        module = LDS + "@other = internal addrspace(3) global [256 x i32] poison, align 16\n"
        args = _dma_args()
        if clean:
            _run(body, args, _BUFFER, module, block=256)
            assert np.array_equal(args[1], args[0][::-1])
        else:
            with pytest.raises(SimError, match="LDS race"):
                _run(body, args, _BUFFER, module, block=256)


def test_a_wave_must_wait_for_its_own_asynchronous_dma() -> None:
    body = _dma("", "global.load.async.lds", "").replace("sub i32 255", "sub i32 63")
    with pytest.raises(SimError, match="before the asynchronous DMA of the same wave is complete"):
        _run(body, _dma_args(), _BUFFER, LDS, block=64)
    marked = "call void @llvm.amdgcn.asyncmark()\n    call void @llvm.amdgcn.wait.asyncmark(i16 0)"
    args = _dma_args()
    _run(_dma(marked, "global.load.async.lds", "").replace("sub i32 255", "sub i32 63"), args, _BUFFER, LDS, block=64)
    assert np.array_equal(args[1][:64], args[0][:64][::-1])


# ---- launch arguments


def test_overlapping_arrays_alias_and_a_failed_run_changes_nothing() -> None:
    memory = np.arange(128, dtype=np.uint32)
    body = """
    %p = getelementptr i32, ptr addrspace(1) %in, i32 %t
    %v = load i32, ptr addrspace(1) %p, align 4
    """ + STORE_OUT.format(value="%v")
    _run(body, [memory[:64], memory[32:96], 0], _BUFFER)
    assert np.array_equal(memory[32:96], np.arange(64))
    assert np.array_equal(memory[:32], np.arange(32)) and memory[100] == 100


def test_fortran_order_and_ml_dtypes_arrays_are_device_memory() -> None:
    out = np.zeros((8, 8), np.uint32, order="F")
    _run(STORE_OUT.format(value="%t"), [out], "ptr addrspace(1) %out")
    assert np.array_equal(out.T.ravel(), np.arange(64))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([np.zeros(4)], "takes 2 arguments, got 1"),
        ([1, 2], "pass a NumPy array, or None"),
        ([np.zeros(4), np.zeros(4)], "is no pointer, got an array"),
        ([np.zeros(4), 1 << 40], "does not fit"),
        ([np.zeros(4), 1.5], "pass an int"),
        ([np.zeros((4, 4))[:, ::2], 1], "pass a contiguous array"),
        ([np.array([None]), 1], "an array of Python objects"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(args: list[Any], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        _run("ret void", args, "ptr addrspace(1) %p, i32 %n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grid": 2**31}, "each below 2\\*\\*31"), ({"grid": 1.5}, "grid is 1.5"),
        ({"grid": 0}, "grid is 0"), ({"block": (1, 2, 3, 4)}, "one to three positive ints"),
        ({"block": 2048}, "use smaller workgroups"), ({"dynamic_lds_bytes": 70000}, "needs 70000 bytes of LDS"),
        ({"block": 32}, "was compiled for 64 to 64"), ({"kernel": "no"}, "has no kernel @no"),
    ],
)  # fmt: skip
def test_wrong_launches_are_refused(options: dict[str, Any], message: str) -> None:
    text = kernel("ret void", "", attrs='"amdgpu-flat-work-group-size"="64,64"')
    with pytest.raises(LaunchError, match=message):
        simulate(text, **{"grid": 1, "block": 64, "args": [], **options})


def test_lds_limit_depends_on_the_target() -> None:
    text = kernel("ret void", "")
    simulate(text, grid=1, block=64, args=[], target="gfx950", dynamic_lds_bytes=160 * 1024)
    with pytest.raises(LaunchError, match="gfx950 has 163840"):
        simulate(text, grid=1, block=64, args=[], target="gfx950", dynamic_lds_bytes=160 * 1024 + 1)


def test_unknown_names_are_refused_before_anything_runs() -> None:
    out = np.zeros(64, np.uint32)
    body = (
        "%x = call i32 @llvm.amdgcn.no.such(i32 1)\n%y = call i32 @helper()\n"
        "%f = call float @llvm.amdgcn.raw.ptr.buffer.load.format.f32(ptr addrspace(8) poison, i32 0, i32 0, i32 0)\n"
        + STORE_OUT.format(value="%x")
    )
    text = kernel(body)
    with pytest.raises(UnsupportedError) as caught:
        simulate(text, grid=1, block=64, args=[out])
    for name in ("@llvm.amdgcn.no.such", "@helper", "buffer.load.format"):
        assert name in str(caught.value)
    assert [u.line for u in check_module(parse_module(text))["k"]] == [
        line_of(text, w) for w in ("no.such", "@helper", "format")
    ]


def test_inline_assembly_and_foreign_instructions_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="inline assembly has no meaning"):
        _run('call void asm sideeffect "s_barrier", ""()\nret void', [], "")
    with pytest.raises(UnsupportedError, match="invoke: an instruction that AMDGPU code does not have"):
        _run("invoke void @f() to label %a unwind label %a\na:\nret void", [], "")


def test_large_grids_run_in_chunks() -> None:
    out = np.zeros(1000 * 64, np.uint32)
    body = """
    %g = call i32 @llvm.amdgcn.workgroup.id.x()
    %b = shl i32 %g, 6
    %i = add i32 %b, %t
    %p = getelementptr i32, ptr addrspace(1) %out, i32 %i
    store i32 %i, ptr addrspace(1) %p
    ret void"""
    seen: list[tuple[int, int]] = []
    simulate(kernel(body), grid=1000, block=64, args=[out], progress=lambda *p: seen.append(p))
    assert np.array_equal(out, np.arange(64000))
    assert seen[-1] == (1000, 1000) and len(seen) > 1


def test_implicit_arguments_hold_the_launch_sizes() -> None:
    out = np.zeros(64, np.uint32)
    body = """
    %i = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
    %p = getelementptr i8, ptr addrspace(4) %i, i32 12
    %s = load i16, ptr addrspace(4) %p, align 4
    %n = load i32, ptr addrspace(4) %i, align 4
    %z = zext i16 %s to i32
    %v = add i32 %z, %n
    """ + STORE_OUT.format(value="%v")
    simulate(kernel(body), grid=1, block=64, args=[out])
    assert (out == 65).all()


def test_arguments_by_reference_and_by_value_hold_structs() -> None:
    body = """
    %p = getelementptr { i32, [2 x float], ptr addrspace(1) }, ptr addrspace(4) %s, i32 0, i32 1, i32 1
    %f = load float, ptr addrspace(4) %p, align 4
    %q = getelementptr { i32, [2 x float], ptr addrspace(1) }, ptr addrspace(4) %s, i32 0, i32 2
    %g = load ptr addrspace(1), ptr addrspace(4) %q, align 8
    %pg = getelementptr i32, ptr addrspace(1) %g, i32 %t
    %x = load i32, ptr addrspace(1) %pg, align 4
    %i = fptosi float %f to i32
    %a = extractvalue { i16, i32 } %v0, 1
    %k = call ptr addrspace(4) @llvm.amdgcn.kernarg.segment.ptr()
    %pk = getelementptr i8, ptr addrspace(4) %k, i32 16
    %h = load i16, ptr addrspace(4) %pk, align 2
    %hz = zext i16 %h to i32
    %s1 = add i32 %x, %i
    %s2 = add i32 %s1, %a
    %v = add i32 %s2, %hz
    """ + STORE_OUT.format(value="%v")
    source, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    params = (
        "ptr addrspace(1) %in, ptr addrspace(1) %out, { i16, i32 } %v0, "
        "ptr addrspace(4) byref({ i32, [2 x float], ptr addrspace(1) }) align 8 %s"
    )
    _run(body, [source, out, (5, 1000), (1, (2.0, 30.0), source)], params)
    assert np.array_equal(out, source + 30 + 1000 + 5)
    with pytest.raises(LaunchError, match="pass a tuple of 3 values"):
        _run(body, [source, out, (5, 1000), (1, 2)], params)
    inner = source * 2
    _run(body, [source, out, (5, 1000), (1, (2.0, 30.0), inner)], params)
    assert np.array_equal(out, inner + 30 + 1000 + 5)
    with pytest.raises(SimError, match=r"out of bounds, at byte 240 of array in argument 3 %s \(240 bytes\)"):
        _run(body, [source, out, (5, 1000), (1, (2.0, 30.0), inner[:60])], params)
    with pytest.raises(LaunchError, match="pass numbers, or arrays and None for pointers"):
        _run(body, [source, out, (5, 1000), (1, (2.0, 30.0), 7)], params)


def test_arrays_that_only_a_struct_points_to_get_the_results() -> None:
    text = (
        "define amdgpu_kernel void @k({ ptr addrspace(1), i32 } %p) {\n"
        "  %a = extractvalue { ptr addrspace(1), i32 } %p, 0\n  %v = extractvalue { ptr addrspace(1), i32 } %p, 1\n"
        "  store i32 %v, ptr addrspace(1) %a, align 4\n  ret void\n}\n"
    )
    out = np.zeros(2, np.int32)
    simulate(text, grid=1, block=1, args=[(out, 9)])
    assert out.tolist() == [9, 0]


_PASSED = "%S = type { i8, i32 }\n"


def test_a_callee_writes_into_its_own_copy_of_a_byval_argument() -> None:
    """Padding of the struct, which nothing ever wrote, is copied without a fault."""
    text = kernel(
        """
    %s = alloca %S, align 4, addrspace(5)
    store i8 1, ptr addrspace(5) %s
    %f = getelementptr %S, ptr addrspace(5) %s, i32 0, i32 1
    store i32 %t, ptr addrspace(5) %f
    %x = call i32 @g(ptr addrspace(5) byval(%S) align 4 %s)
    %y = load i32, ptr addrspace(5) %f
    %h = mul i32 %x, 1000
    %v = add i32 %h, %y
    """
        + STORE_OUT.format(value="%v"),
        module=_PASSED + "define i32 @g(ptr addrspace(5) byval(%S) align 4 %p) {\n"
        "  %f = getelementptr %S, ptr addrspace(5) %p, i32 0, i32 1\n  %a = load i32, ptr addrspace(5) %f\n"
        "  %b = add i32 %a, 5\n  store i32 %b, ptr addrspace(5) %f\n"
        "  ret i32 %b\n}\n",
    )
    out = np.zeros(64, np.uint32)
    simulate(text, grid=1, block=64, args=[out])
    assert np.array_equal(out, (np.arange(64) + 5) * 1000 + np.arange(64))


def test_a_copy_of_what_was_never_written_was_never_written() -> None:
    body = """
    %a = alloca [2 x i32], align 4, addrspace(5)
    %b = alloca [2 x i32], align 4, addrspace(5)
    store [2 x i32] zeroinitializer, ptr addrspace(5) %b
    store i32 %t, ptr addrspace(5) %a
    call void @llvm.memcpy.p5.p5.i32(ptr addrspace(5) %b, ptr addrspace(5) %a, i32 8, i1 false)
    %p = getelementptr i8, ptr addrspace(5) %b, i32 PLACE
    %v = load i32, ptr addrspace(5) %p, align 4
    """ + STORE_OUT.format(value="%v")
    out = np.zeros(64, np.uint32)
    _run(body.replace("PLACE", "0"), [out], "ptr addrspace(1) %out")
    assert np.array_equal(out, np.arange(64))
    with pytest.raises(SimError, match=r"%v = load.*never written"):
        _run(body.replace("PLACE", "4"), [out], "ptr addrspace(1) %out")
    out = np.full(64, 5, np.uint32)
    body = (
        "%a = alloca i64, addrspace(5)\nstore i32 %t, ptr addrspace(5) %a\n"
        "%p = getelementptr i32, ptr addrspace(1) %out, i32 %t\n"
        "%c = icmp eq i32 %t, 0\nbr i1 %c, label %one, label %end\none:\n"
        "call void @llvm.memcpy.p1.p5.i32(ptr addrspace(1) %p, ptr addrspace(5) %a, i32 8, i1 false)\nbr label %end\n"
        "end:\nret void"
    )
    report = simulate(kernel(body), grid=1, block=64, args=[out])
    assert out[:3].tolist() == [0, 5, 5] and "were never written are copied to global memory" in report.warnings[0]


def test_scalar_buffer_loads_and_asynchronous_copies_of_gfx1250() -> None:
    source, out = np.arange(64, dtype=np.uint32) * 7, np.zeros(64, np.uint32)
    body = (
        _RSRC
        + """
    %s = call i32 @llvm.amdgcn.s.buffer.load.i32(ptr addrspace(8) %r, i32 12, i32 0)
    %p = getelementptr i32, ptr addrspace(1) %in, i32 %t
    %m = sub i32 63, %t
    %q = getelementptr i32, ptr addrspace(3) @lds, i32 %m
    call void @llvm.amdgcn.global.load.async.to.lds.b32(ptr addrspace(1) %p, ptr addrspace(3) %q, i32 0, i32 0)
    call void @llvm.amdgcn.s.wait.asynccnt(i16 0)
    WAIT
    %o = getelementptr i32, ptr addrspace(3) @lds, i32 %t
    %x = load i32, ptr addrspace(3) %o, align 4
    %v = add i32 %x, %s
    """
        + STORE_OUT.format(value="%v")
    )
    release = 'fence syncscope("workgroup") release\n'
    split = (
        release + "call void @llvm.amdgcn.s.barrier.signal(i32 -1)\ncall void @llvm.amdgcn.s.barrier.wait(i16 -1)\n"
        'fence syncscope("workgroup") acquire'
    )
    _run(body.replace("WAIT", split), [source, out, 256], _BUFFER, LDS, target="gfx1250")
    assert np.array_equal(out, source[::-1] + 21)
    late = split.replace(release, "").replace(
        "call void @llvm.amdgcn.s.barrier.wait", release + "call void @llvm.amdgcn.s.barrier.wait"
    )
    store = "store i32 %t, ptr addrspace(3) %q, align 4\n"
    text = body.replace(
        "call void @llvm.amdgcn.global.load.async.to.lds.b32(ptr addrspace(1) %p, ptr addrspace(3) %q, i32 0, i32 0)",
        store,
    )
    _run(text.replace("WAIT", split), [source, out, 256], _BUFFER, LDS, target="gfx1250")
    with pytest.raises(SimError, match="LDS race"):
        _run(text.replace("WAIT", late), [source, out, 256], _BUFFER, LDS, target="gfx1250")


def test_transposing_loads_exchange_elements_of_sixteen_lanes() -> None:
    out = np.zeros((64, 4), np.float16)
    body = """
    %h = uitofp i32 %t to half
    %i = insertelement <4 x half> poison, half %h, i32 0
    %v4 = shufflevector <4 x half> %i, <4 x half> poison, <4 x i32> zeroinitializer
    %p = getelementptr <4 x half>, ptr addrspace(3) @lds, i32 %t
    store <4 x half> %v4, ptr addrspace(3) %p, align 8
    %x = call <4 x half> @llvm.amdgcn.ds.read.tr16.b64.v4f16(ptr addrspace(3) %p)
    %po = getelementptr <4 x half>, ptr addrspace(1) %out, i32 %t
    store <4 x half> %x, ptr addrspace(1) %po, align 8
    ret void"""
    _run(body, [out], "ptr addrspace(1) %out", LDS, target="gfx950")
    lane = np.arange(64)
    assert np.array_equal(out, lane[:, None] // 16 * 16 + 4 * np.arange(4) + lane[:, None] % 16 // 4)
    with pytest.raises(SimError, match="known for: gfx950"):
        _run(body, [out], "ptr addrspace(1) %out", LDS)


def test_compare_exchange_in_a_loop_of_diverging_lanes() -> None:
    """A lock-free sum: lanes retry until their exchange succeeds."""
    cell, out = np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    body = """
    br label %try
    try:
    %n = phi i32 [ 0, %entry ], [ %n1, %try ]
    %seen = load atomic i32, ptr addrspace(1) %in syncscope("agent") monotonic, align 4
    %want = add i32 %seen, %t
    %p = cmpxchg ptr addrspace(1) %in, i32 %seen, i32 %want syncscope("agent") monotonic monotonic, align 4
    %ok = extractvalue { i32, i1 } %p, 1
    %n1 = add i32 %n, 1
    br i1 %ok, label %done, label %try
    done:
    %old = extractvalue { i32, i1 } %p, 0
    """ + STORE_OUT.format(value="%old")
    _run(body, [cell, out, 0], _BUFFER)
    assert int(cell[0]) == 64 * 63 // 2
    assert len(set(out.tolist())) == 63  # lane 0 adds zero, so one old value occurs twice


@pytest.mark.parametrize(("scope", "clean"), [("local", True), ("global", False)])
def test_annotated_fences_order_the_memory_they_name(scope: str, clean: bool) -> None:
    from tests.sim.kernels import exchange

    fences = "".join(
        f'  fence syncscope("workgroup") {o}, !mmra !0\n' if o != "b" else "  call void @llvm.amdgcn.s.barrier()\n"
        for o in ("release", "b", "acquire")
    )
    text = exchange(before=fences) + f'!0 = !{{!"amdgpu-synchronize-as", !"{scope}"}}\n'
    out = np.zeros(256, np.uint32)
    if clean:
        simulate(text, grid=1, block=256, args=[out])
        assert out[0] == 255
    else:
        with pytest.raises(SimError, match="LDS race"):
            simulate(text, grid=1, block=256, args=[out])


def test_atomics_and_dma_through_fat_pointers() -> None:
    cells, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    head = (
        _RSRC
        + """
    %f = addrspacecast ptr addrspace(8) %r to ptr addrspace(7)
    %p = getelementptr i32, ptr addrspace(7) %f, i32 %t
    """
    )
    body = (
        head
        + """
    %o = atomicrmw add ptr addrspace(7) %p, i32 5 monotonic, align 4
    %x = cmpxchg ptr addrspace(7) %p, i32 8, i32 100 monotonic monotonic, align 4
    %v = extractvalue { i32, i1 } %x, 0
    """
        + STORE_OUT.format(value="%v")
    )
    report = _run(body, [cells, out, 160], _BUFFER)
    lane = np.arange(64)
    assert np.array_equal(cells, np.where(lane == 3, 100, np.where(lane < 40, lane + 5, lane)))
    assert np.array_equal(out, np.where(lane < 40, lane + 5, 0)) and report.clipped_lanes == 48
    body = (
        head
        + """
    call void @llvm.amdgcn.load.to.lds.p7(ptr addrspace(7) %p, ptr addrspace(3) @lds, i32 4, i32 0, i32 0)
    %q = getelementptr i32, ptr addrspace(3) @lds, i32 %t
    %v = load i32, ptr addrspace(3) %q, align 4
    """
        + STORE_OUT.format(value="%v")
    )
    _run(body, [cells, out, 160], _BUFFER, LDS)
    assert np.array_equal(out, np.where(lane < 40, cells, 0))


def test_atomic_operation_that_does_not_exist_is_refused() -> None:
    body = _RSRC + (
        "%v = call i32 @llvm.amdgcn.raw.ptr.buffer.atomic.fadd.i32(i32 1, ptr addrspace(8) %r, i32 0, i32 0, i32 0)\n"
    )
    with pytest.raises(SimError, match="no atomic fadd on i32"):
        _run(body + STORE_OUT.format(value="%v"), [np.zeros(4, np.uint32), np.zeros(64, np.uint32), 16], _BUFFER)


_TURN = """
    %slots = alloca ptr addrspace(5), addrspace(5)
    br label %loop
    loop:
    %i = phi i32 [ 0, %entry ], [ %i1, %loop ]
    %a = alloca i32, addrspace(5)
    store i32 %i, ptr addrspace(5) %a
    USE
    %x = load i32, ptr addrspace(5) %a
    %i1 = add i32 %x, 1
    %more = icmp ult i32 %i1, 4
    br i1 %more, label %loop, label %end
    end:
    """


def test_stack_slots_of_a_loop_are_refused_where_their_address_outlives_a_turn() -> None:
    out = np.zeros(64, np.uint32)
    rest = STORE_OUT.format(value="%i1")
    used = "%g = getelementptr i8, ptr addrspace(5) %a, i32 0\n%y = load i32, ptr addrspace(5) %g"
    _run(_TURN.replace("USE", used) + rest, [out], "ptr addrspace(1) %out")
    assert (out == 4).all()
    kept = "store ptr addrspace(5) %a, ptr addrspace(5) %slots"
    with pytest.raises(SimError, match=r"its address outlives a turn.*\n.*move it to the function's first block"):
        _run(_TURN.replace("USE", kept) + rest, [out], "ptr addrspace(1) %out")
    once = kernel(
        "br label %loop\nloop:\n%i = phi i32 [ 0, %entry ], [ %i1, %loop ]\n%i1 = call i32 @next(i32 %i)\n"
        "%more = icmp ult i32 %i1, 4\nbr i1 %more, label %loop, label %end\nend:\n" + rest,
        module="define i32 @next(i32 %x) {\n  %p = alloca ptr addrspace(5), addrspace(5)\n"
        "  %a = alloca i32, addrspace(5)\n  store ptr addrspace(5) %a, ptr addrspace(5) %p\n"
        "  %q = load ptr addrspace(5), ptr addrspace(5) %p\n  store i32 %x, ptr addrspace(5) %q\n"
        "  %y = load i32, ptr addrspace(5) %a\n  %z = add i32 %y, 1\n  ret i32 %z\n}\n",
    )
    simulate(once, grid=1, block=64, args=[out])  # the call returns: its slots are new ones each time
    assert (out == 4).all()


@pytest.mark.parametrize("size", ["", "i64 4, "], ids=["LLVM 22", "before"])
def test_a_stack_slot_has_no_content_outside_of_its_lifetime(size: str) -> None:
    body = (
        f"%a = alloca i32, addrspace(5)\ncall void @llvm.lifetime.start.p5({size}ptr addrspace(5) %a)\n"
        "store i32 %t, ptr addrspace(5) %a\nFIRST\n"
        f"call void @llvm.lifetime.end.p5({size}ptr addrspace(5) %a)\nSECOND\n" + STORE_OUT.format(value="%v")
    )
    load = "%v = load i32, ptr addrspace(5) %a"
    out = np.zeros(64, np.uint32)
    _run(body.replace("FIRST", load).replace("SECOND", ""), [out], "ptr addrspace(1) %out")
    assert np.array_equal(out, np.arange(64))
    with pytest.raises(SimError, match=r"never written.*\n.*after llvm\.lifetime\.end"):
        _run(body.replace("SECOND", load).replace("FIRST", ""), [out], "ptr addrspace(1) %out")
