"""Memory on both engines: buffers, stack slots, flat pointers, atomic operations, copies to LDS."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate
from tests.sim.engines import both
from tests.sim.kernels import FENCED_BARRIER, LDS, STORE_OUT, kernel

pytestmark = [pytest.mark.llvm, pytest.mark.sim]
LANE_WORD = "%p = getelementptr i32, ptr addrspace(3) @lds, i32 %t\nstore i32 %t, ptr addrspace(3) %p, align 4\n"


@pytest.mark.parametrize(
    "operation",
    ["add", "sub", "and", "or", "xor", "xchg", "umax", "umin", "max", "min", "usub_sat"],
)
def test_atomic_operations_in_lds_give_the_old_values_in_lane_order(operation: str) -> None:
    body = f"""{LANE_WORD}{FENCED_BARRIER}
      %i = and i32 %t, 5
      %q = getelementptr i32, ptr addrspace(3) @lds, i32 %i
      %x = mul i32 %t, 40503
      %old = atomicrmw {operation} ptr addrspace(3) %q, i32 %x syncscope("workgroup") monotonic
{STORE_OUT.format(value="%old")}"""
    both(kernel(body, module=LDS), grid=2, block=256, args=[np.zeros(256, np.int32)])


@pytest.mark.parametrize("operation", ["fadd", "fsub", "fmax", "fmin"])
def test_atomic_float_operations_in_lds_agree(operation: str) -> None:
    body = f"""{LANE_WORD}{FENCED_BARRIER}
      %i = and i32 %t, 3
      %q = getelementptr float, ptr addrspace(3) @lds, i32 %i
      %f = uitofp i32 %t to float
      %x = fmul float %f, 0x3FB99999A0000000
      %old = atomicrmw {operation} ptr addrspace(3) %q, float %x monotonic
      %bits = bitcast float %old to i32
{STORE_OUT.format(value="%bits")}"""
    both(kernel(body, module=LDS), grid=1, block=256, args=[np.zeros(256, np.int32)])


def test_a_compare_and_exchange_of_some_lanes_agrees() -> None:
    body = f"""{LANE_WORD}{FENCED_BARRIER}
      %odd = and i32 %t, 1
      %c = icmp eq i32 %odd, 0
      br i1 %c, label %try, label %end
    try:
      %q = getelementptr i32, ptr addrspace(3) @lds, i32 %l
      %pair = cmpxchg ptr addrspace(3) %q, i32 %l, i32 %w monotonic monotonic
      %old = extractvalue {{ i32, i1 }} %pair, 0
      %won = extractvalue {{ i32, i1 }} %pair, 1
      %z = zext i1 %won to i32
      %s = shl i32 %old, 1
      %both = or i32 %s, %z
      br label %end
    end:
      %r = phi i32 [ -1, %entry ], [ %both, %try ]
{STORE_OUT.format(value="%r")}"""
    both(kernel(body, module=LDS), grid=1, block=256, args=[np.zeros(256, np.int32)])


def test_commuting_atomic_operations_on_global_memory_agree() -> None:
    body = """\
      %i = and i32 %t, 31
      %q = getelementptr i32, ptr addrspace(1) %out, i32 %i
      %a = atomicrmw add ptr addrspace(1) %q, i32 %t monotonic
      %b = atomicrmw sub ptr addrspace(1) %out, i32 %w monotonic
      ret void
    """
    both(kernel(body), grid=5, block=256, args=[np.zeros(256, np.int32)])


@pytest.mark.parametrize("operation", "add sub smin umin smax umax and or xor".split())
@pytest.mark.parametrize(("form", "t"), [("raw.ptr", "i32"), ("struct.ptr", "i64")])
def test_atomic_operations_on_buffers_agree(operation: str, form: str, t: str) -> None:
    size, structured = (8 if t == "i64" else 4), form == "struct.ptr"
    where = f"i32 %i, i32 0, i32 {4 * size}" if structured else f"i32 %b, i32 {4 * size}"
    stride, records = (size, 40) if structured else (0, 40 * size)
    body = f"""\
      %g = call i32 @llvm.amdgcn.workgroup.id.x()
      %x = mul i32 %t, 40503
      %y = xor i32 %x, %g
      %z = zext i32 %y to i64
      %wide = mul i64 %z, 2654435761
      %v = {"lshr" if t == "i64" else "trunc"} i64 %wide{", 1" if t == "i64" else " to i32"}
      %i = and i32 %t, 63
      %b = mul i32 %i, {size}
      %r = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(
        ptr addrspace(1) %out, i16 {stride}, i64 {records}, i32 0)
      %old = call {t} @llvm.amdgcn.{form}.buffer.atomic.{operation}.{t}({t} %v, ptr addrspace(8) %r, {where}, i32 0)
      ret void
    """
    out = np.random.default_rng(0).integers(0, 1 << 40, 64).astype(np.int64 if t == "i64" else np.int32)
    before = out.copy()
    reports = both(kernel(body), grid=3, block=200, args=[out])
    assert reports[1].clipped and (out[4:40] != before[4:40]).any() and (out[44:] == before[44:]).all()


def test_an_atomic_operation_through_a_fat_pointer_agrees() -> None:
    body = """\
      %r = call ptr addrspace(7) @llvm.amdgcn.make.buffer.rsrc.p7.p1(ptr addrspace(1) %out, i16 0, i64 100, i32 0)
      %i = and i32 %t, 31
      %p = getelementptr i32, ptr addrspace(7) %r, i32 %i
      %old = atomicrmw umax ptr addrspace(7) %p, i32 %t monotonic
      ret void
    """
    out = np.zeros(32, np.int32)
    reports = both(kernel(body), grid=2, block=256, args=[out])
    assert reports[1].clipped and (out[:25] == np.arange(224, 249)).all() and not out[25:].any()


@pytest.mark.parametrize("use", ["a result", "two kinds"])
def test_atomic_operations_on_buffers_whose_order_matters_are_left_to_the_first_engine(use: str) -> None:
    call = "call i32 @llvm.amdgcn.raw.ptr.buffer.atomic.{}.i32(i32 %t, ptr addrspace(8) %r, i32 0, i32 0, i32 0)"
    body = f"""\
      %r = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %out, i16 0, i64 100, i32 0)
      %a = {call.format("add")}
      {"store i32 %a, ptr addrspace(1) %out" if use == "a result" else f"%b = {call.format('umax')}"}
      ret void
    """
    words = "the result of an atomic add on global memory" if use == "a result" else "atomic add and umax"
    with pytest.raises(SimError, match=words):
        simulate(kernel(body), grid=2, block=64, args=[np.zeros(64, np.int32)], checks="none", engine="jit")


@pytest.mark.parametrize("space", [3, 5])
def test_casts_to_flat_and_back_agree(space: int) -> None:
    """Half of the lanes go through LDS or private memory, the others through global memory."""
    base, index = ("@lds", "%t") if space == 3 else ("%stack", 1)
    body = f"""\
      %stack = alloca [4 x i32], align 4, addrspace(5)
      %short = getelementptr i32, ptr addrspace({space}) {base}, i32 {index}
      %own = addrspacecast ptr addrspace({space}) %short to ptr
      %global = getelementptr i32, ptr addrspace(1) %out, i32 %t
      %far = addrspacecast ptr addrspace(1) %global to ptr
      %bit = and i32 %t, 1
      %odd = icmp eq i32 %bit, 1
      %flat = select i1 %odd, ptr %own, ptr %far
      %v = mul i32 %t, 3
      store i32 %v, ptr %flat, align 4
      %r = load i32, ptr %flat, align 4
      %back = addrspacecast ptr %own to ptr addrspace({space})
      %a = ptrtoint ptr addrspace({space}) %back to i32
      %none = addrspacecast ptr null to ptr addrspace({space})
      %n = ptrtoint ptr addrspace({space}) %none to i32
      %zero = addrspacecast ptr addrspace({space}) %none to ptr
      %z = ptrtoint ptr %zero to i32
      %b = add i32 %a, %n
      %c = add i32 %b, %z
      %sum = add i32 %r, %c
{STORE_OUT.format(value="%sum")}"""
    both(kernel(body, module=LDS), grid=1, block=256, args=[np.zeros(256, np.int32)])


PARAMS = "ptr addrspace(1) %in, ptr addrspace(1) %out"


@pytest.mark.parametrize("size", [1, 2, 4, 12, 16])
def test_copies_to_lds_agree(size: int) -> None:
    words = max(1, size // 4)
    module = f"@lds = internal addrspace(3) global [{256 * words} x i32] poison, align 16\n"
    body = f"""
      %o = mul i32 %t, {size}
      %from = getelementptr i8, ptr addrspace(1) %in, i32 %o
      %at = mul i32 %w, {64 * 4 * words}
      %to = getelementptr i8, ptr addrspace(3) @lds, i32 %at
      %far = icmp ugt i32 %t, 200
      br i1 %far, label %buffer, label %plain
    plain:
      call void @llvm.amdgcn.global.load.lds(ptr addrspace(1) %from, ptr addrspace(3) %to, i32 {size}, i32 0, i32 0)
      br label %end
    buffer:
      %d = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %in, i16 0, i32 {240 * size}, i32 0)
      call void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8) %d, ptr addrspace(3) %to, i32 {size}, i32 %o, i32 0, i32 0, i32 0)
      br label %end
    end:
      call void @llvm.amdgcn.s.waitcnt(i32 0)
{FENCED_BARRIER}
      %e = mul i32 %t, {4 * words}
      %back = getelementptr i8, ptr addrspace(3) @lds, i32 %e
      %v = load <{words} x i32>, ptr addrspace(3) %back, align 4
      %po = getelementptr i8, ptr addrspace(1) %out, i32 %e
      store <{words} x i32> %v, ptr addrspace(1) %po, align 4
      ret void
    """  # noqa: E501
    data = np.random.default_rng(0).integers(0, 256, 256 * size).astype(np.uint8)
    first, _ = both(kernel(body, PARAMS, module), grid=1, block=256, args=[data, np.zeros(256 * words, np.int32)])
    assert first.clipped_lanes == 16


def test_stack_slots_and_flat_pointers_agree() -> None:
    body = f"""
      %a = alloca [4 x i32], align 4, addrspace(5)
      %i = and i32 %t, 3
      %pa = getelementptr i32, ptr addrspace(5) %a, i32 %i
      store i32 %t, ptr addrspace(5) %pa, align 4
      %p0 = getelementptr i32, ptr addrspace(1) %out, i32 %t
      %flat = addrspacecast ptr addrspace(1) %p0 to ptr
      %old = load i32, ptr %flat, align 4
      %mine = load i32, ptr addrspace(5) %pa, align 4
      %sum = add i32 %old, %mine
      store i32 %sum, ptr %flat, align 4
      %h = trunc i32 %sum to i13
      %pb = getelementptr [4 x i32], ptr addrspace(5) %a, i32 0, i32 2
      store i13 %h, ptr addrspace(5) %pb, align 4
      %g = load i13, ptr addrspace(5) %pb, align 4
      %v = zext i13 %g to i32
{STORE_OUT.format(value="%v")}"""
    both(kernel(body), grid=1, block=256, args=[np.arange(256, dtype=np.int32) * 77])


@pytest.mark.parametrize("records", [0, 3, 64, 515, 1 << 20])
@pytest.mark.parametrize("t", ["i32", "<4 x i32>", "<3 x i16>", "i8", "i64"])
def test_accesses_past_a_descriptor_agree(t: str, records: int) -> None:
    name = {"i32": "i32", "<4 x i32>": "v4i32", "<3 x i16>": "v3i16", "i8": "i8", "i64": "i64"}[t]
    body = f"""
      %n = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %records)
      %di = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %in, i16 0, i32 %n, i32 0)
      %do = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %out, i16 0, i32 %n, i32 0)
      %o = mul i32 %t, 10
      %v = call {t} @llvm.amdgcn.raw.ptr.buffer.load.{name}(ptr addrspace(8) %di, i32 %o, i32 2, i32 0)
      call void @llvm.amdgcn.raw.ptr.buffer.store.{name}({t} %v, ptr addrspace(8) %do, i32 %o, i32 0, i32 0)
      ret void
    """
    data = np.random.default_rng(0).integers(0, 256, 4096).astype(np.uint8)
    args = [data, np.full(4096, 7, np.uint8), min(records, 4096)]
    both(kernel(body, f"{PARAMS}, i32 %records"), grid=1, block=100, args=args)


def test_bits_are_cut_into_pieces_of_any_width() -> None:
    body = """\
      %b = mul i32 %t, 12
      %p = getelementptr i8, ptr addrspace(1) %in, i32 %b
      %v = load <3 x i32>, ptr addrspace(1) %p, align 4
      %six = bitcast <3 x i32> %v to <16 x i6>
      %a = extractelement <16 x i6> %six, i32 5
      %c = extractelement <16 x i6> %six, i32 10
      %turned = shufflevector <16 x i6> %six, <16 x i6> poison, <16 x i32> <i32 15, i32 1, i32 2, i32 3, i32 4, i32 5,
 i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 0>
      %back = bitcast <16 x i6> %turned to <3 x i32>
      %x = extractelement <3 x i32> %back, i32 0
      %a32 = zext i6 %a to i32
      %c32 = sext i6 %c to i32
      %s = add i32 %a32, %c32
      %r = add i32 %s, %x
      %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
      store i32 %r, ptr addrspace(1) %po, align 4
      ret void
    """.replace(",\n i32", ", i32")
    data = np.random.default_rng(0).integers(0, 256, 64 * 12).astype(np.uint8)
    both(kernel(body, PARAMS), grid=1, block=64, args=[data, np.zeros(64, np.int32)])
