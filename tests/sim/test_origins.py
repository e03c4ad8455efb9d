"""Where a value comes from goes with it through registers, lanes, scratch and LDS: a mismatch is found behind all."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from flyllvm.sim.compile import Compiler
from flyllvm.sim.convert import to_bytes
from flyllvm.sim.ir import Inst
from flyllvm.sim.machine import Machine
from flyllvm.sim.origins import OFFSET, ZERO, Plan
from flyllvm.sim.run import compiled
from flyllvm.sim.types import StructType
from tests.sim.kernels import line_of
from tests.sim.operands import MFMA, MFMA_950, MFMA_FP8, WMMA_1250, Kernel, Place, Shape, plain, swizzled
from tests.sim.test_foreign import _flydsl_gemm, _gemm_arguments, _run, _run_flydsl
from tests.sim.test_tensor import call, words

pytestmark = pytest.mark.sim


def warnings(kernel: Kernel, write: Place, read: Place, **options: Any) -> list[str]:
    found: list[str] = kernel.run(write, read, **options).warnings
    return found


TRAVELS = {
    "bitcast and shuffle": (
        "%y1 = bitcast {T} %f0 to <2 x i32>\n"
        "%y2 = shufflevector <2 x i32> %y1, <2 x i32> poison, <2 x i32> <i32 1, i32 0>\n"
        "%y3 = shufflevector <2 x i32> %y2, <2 x i32> %y1, <2 x i32> <i32 1, i32 3>\n"
        "%x0 = bitcast <2 x i32> %y3 to {T}\n"
    ),
    "extract and insert": (
        "%y1 = bitcast {T} %f0 to <8 x i8>\n%y2 = extractelement <8 x i8> %y1, i32 3\n"
        "%y3 = insertelement <8 x i8> %y1, i8 %y2, i32 3\n%x0 = bitcast <8 x i8> %y3 to {T}\n"
    ),
    "at an index known at run time": (
        "%at = and i32 %t, 1\n%y1 = bitcast {T} %f0 to <2 x i32>\n%y2 = extractelement <2 x i32> %y1, i32 %at\n"
        "%y3 = insertelement <2 x i32> %y1, i32 %y2, i32 %at\n%x0 = bitcast <2 x i32> %y3 to {T}\n"
    ),
    "shifts and masks": (
        "%y1 = bitcast {T} %f0 to i64\n%y2 = trunc i64 %y1 to i32\n%y3 = lshr i64 %y1, 32\n%y4 = trunc i64 %y3 to i32\n"
        "%y5 = and i32 %y2, 65535\n%y6 = and i32 %y2, -65536\n%y7 = or i32 %y5, %y6\n%y8 = zext i32 %y4 to i64\n"
        "%y9 = shl i64 %y8, 32\n%y10 = zext i32 %y7 to i64\n%y11 = or disjoint i64 %y9, %y10\n"
        "%x0 = bitcast i64 %y11 to {T}\n"
    ),
    "select, freeze": (
        "%y1 = freeze {T} %f0\n%c1 = icmp ult i32 %t, 99\n"
        "%x0 = select i1 %c1, {T} %y1, {T} zeroinitializer\n"
    ),
    "a struct": "%y1 = insertvalue {{ i32, {T} }} poison, {T} %f0, 1\n%x0 = extractvalue {{ i32, {T} }} %y1, 1\n",
    "a phi": "br label %next\nnext:\n%x0 = phi {T} [ %f0, %start ]\n",
    "scratch": (
        "%s1 = alloca {T}, align 8, addrspace(5)\nstore {T} %f0, ptr addrspace(5) %s1, align 8\n"
        "%x0 = load {T}, ptr addrspace(5) %s1, align 8\n"
    ),
    "LDS through flat pointers": (
        "%l1 = mul i32 %t, 8\n%l2 = add i32 %l1, 8192\n%l3 = getelementptr i8, ptr addrspace(3) @lds, i32 %l2\n"
        "%l4 = addrspacecast ptr addrspace(3) %l3 to ptr\nstore {T} %f0, ptr %l4, align 8\n"
        "%x0 = load {T}, ptr %l4, align 8\n"
    ),
    "perm and align": (
        "%y1 = bitcast {T} %f0 to <2 x i32>\n%y2 = extractelement <2 x i32> %y1, i32 0\n"
        "%y3 = extractelement <2 x i32> %y1, i32 1\n%y4 = call i32 @llvm.amdgcn.perm(i32 %y3, i32 %y2, i32 50462976)\n"
        "%y5 = call i32 @llvm.amdgcn.alignbyte(i32 %y3, i32 %y2, i32 2)\n"
        "%y6 = call i32 @llvm.fshr.i32(i32 %y3, i32 %y2, i32 16)\n%y7 = shl i32 %y5, 16\n%y8 = lshr i32 %y4, 16\n"
        "%y9 = and i32 %y4, 65535\n%y10 = lshr i32 %y6, 0\n%y11 = shl i32 %y10, 16\n%y12 = or i32 %y11, %y9\n"
        "%y13 = insertelement <2 x i32> poison, i32 %y12, i32 0\n%y14 = insertelement <2 x i32> %y13, i32 %y3, i32 1\n"
        "%x0 = bitcast <2 x i32> %y14 to {T}\n"
    ),
    "lanes": (
        "%y1 = bitcast {T} %f0 to <2 x i32>\n%y2 = extractelement <2 x i32> %y1, i32 0\n"
        "%y3 = extractelement <2 x i32> %y1, i32 1\n%a1 = xor i32 %t, 5\n%a2 = shl i32 %a1, 2\n"
        "%y4 = call i32 @llvm.amdgcn.ds.bpermute(i32 %a2, i32 %y2)\n"
        "%y5 = call i32 @llvm.amdgcn.ds.bpermute(i32 %a2, i32 %y4)\n"
        "%y6 = call i32 @llvm.amdgcn.update.dpp.i32(i32 %y3, i32 %y3, i32 177, i32 15, i32 15, i1 true)\n"
        "%y7 = call i32 @llvm.amdgcn.mov.dpp.i32(i32 %y6, i32 177, i32 15, i32 15, i1 true)\n"
        "%y8 = insertelement <2 x i32> poison, i32 %y5, i32 0\n%y9 = insertelement <2 x i32> %y8, i32 %y7, i32 1\n"
        "%x0 = bitcast <2 x i32> %y9 to {T}\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("travel", TRAVELS)
def test_origins_follow_values(travel: str) -> None:
    change = TRAVELS[travel].replace("{{", "{").replace("}}", "}").replace("{T}", MFMA_FP8.operand)
    if MFMA_FP8.operand == "i64":
        change = re.sub(r"zeroinitializer\n", "0\n", change)
    kernel = Kernel(MFMA_FP8, 64, change=change, before="br label %start\nstart:\n")
    kernel.steps = 1
    assert warnings(kernel, swizzled(64), plain(64))
    assert not warnings(kernel, swizzled(64), swizzled(64))


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Every value is compared with the memory that it is said to come from; counts the bytes."""
    plain_ops, seen = Plan.ops, Counter[str]()

    def ops(self: Plan, c: Compiler, inst: Inst) -> list[Any]:
        found = plain_ops(self, c, inst)
        if inst.name not in self.followed or isinstance(inst.type, StructType):
            return found
        d = c.dest(inst)

        def check(r: list[Any], m: Machine) -> None:
            origin = m.origin[d]
            if origin is None or r[d] is None:  # a link in a chain of insertions has no value of its own
                return
            raw = to_bytes(inst.type, r[d])
            lanes = np.broadcast_shapes(raw.shape[:3], origin.shape[:3], m.shape)
            raw, origin = (np.broadcast_to(x, lanes + raw.shape[3:])[m.mask] for x in (raw, origin))
            known = origin > 0
            assert np.array_equal(raw[known], m.heap.data[(origin[known] & OFFSET) - 1]), inst
            assert not raw[origin == ZERO].any()
            seen[inst.op] += int(known.sum())

        return [*found, check]

    monkeypatch.setattr(Plan, "ops", ops)
    compiled.cache_clear()
    yield seen
    compiled.cache_clear()


@pytest.mark.parametrize("travel", TRAVELS)
def test_a_value_is_what_is_in_memory_where_it_comes_from(travel: str, verified: Counter[str]) -> None:
    change = TRAVELS[travel].replace("{{", "{").replace("}}", "}").replace("{T}", "i64")
    kernel = Kernel(MFMA_FP8, 64, change=change.replace("zeroinitializer\n", "0\n"), before="br label %start\nstart:\n")
    kernel.steps = 1
    kernel.run(swizzled(64), swizzled(64))
    assert verified["load"] > 0 and sum(verified.values()) > verified["load"]


@pytest.mark.parametrize("name", ["gemm-gfx942", "gemm-gfx950", "flydsl_gemm-gfx942", "flydsl_gemm-gfx950"])
def test_values_of_foreign_kernels_are_what_is_in_memory(name: str, verified: Counter[str]) -> None:
    kind, target = name.split("-")
    if kind == "gemm":
        _run("gemm", target, (2, 2), _gemm_arguments(), checks="all")
    else:
        _run_flydsl("gemm", target, (2, 2), _flydsl_gemm(), "all")
    assert verified["load"] > 100_000


def test_origins_follow_conversions_of_elements() -> None:
    widened = "".join(
        f"%y{i} = call <2 x float> @llvm.amdgcn.cvt.pk.f32.fp8(i32 %q{i // 2}, i1 {i % 2})\n"
        f"%h{i} = fptrunc <2 x float> %y{i} to <2 x half>\n"
        for i in range(2)
    )
    change = (
        "%q0 = load i32, ptr addrspace(3) %r0_0, align 4\n" + widened
        + "%x0 = shufflevector <2 x half> %h0, <2 x half> %h1, <4 x i32> <i32 0, i32 1, i32 2, i32 3>\n"
    )  # fmt: skip
    kernel = Kernel(MFMA, 64, change=change)
    kernel.steps = 1
    assert warnings(kernel, swizzled(64), plain(64))
    assert not warnings(kernel, swizzled(64), swizzled(64))


# ---- copies that do not pass through registers, and loads that transpose

SIZE = "i32 16, i32 0, i32 0)\n"
GLOBAL_LDS = "call void @llvm.amdgcn.global.load.lds(ptr addrspace(1) %g{i}, ptr addrspace(3) {lds}, " + SIZE
ASYNC_LDS = GLOBAL_LDS.replace("load.lds", "load.async.lds") + "call void @llvm.amdgcn.s.waitcnt(i32 3952)\n"
RSRC = "%desc{i} = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1("
RSRC += "ptr addrspace(1) %a, i16 0, i64 32768, i32 159744)\n"
BUFFER_LDS = (
    RSRC + "call void @llvm.amdgcn.raw.ptr.buffer.load.lds("
    "ptr addrspace(8) %desc{i}, ptr addrspace(3) {lds}, i32 16, i32 %o{i}, i32 0, i32 0, i32 0)\n"
)
FAT_LDS = (
    RSRC.replace("p8", "p7").replace("(8)", "(7)") + "%e{i} = getelementptr i8, ptr addrspace(7) %desc{i}, i32 %o{i}\n"
    "call void @llvm.amdgcn.load.to.lds.p7(ptr addrspace(7) %e{i}, ptr addrspace(3) {lds}, i32 16, i32 0, i32 0)\n"
)


@pytest.mark.parametrize("copy", [GLOBAL_LDS, ASYNC_LDS, BUFFER_LDS, FAT_LDS])
def test_direct_copies_to_lds_whose_source_is_swizzled(copy: str) -> None:
    """Lane i writes piece i, so the swizzle is in the global address."""
    copy = "%h{i} = getelementptr i8, ptr addrspace(3) @lds, i32 {at}\n" + copy.replace("{lds}", "%h{i}")
    offset = (
        "%rb{i} = mul i32 %row{i}, 512\n%bit{i} = and i32 %row{i}, 3\n%bx{i} = shl i32 %bit{i}, 4\n"
        "%cx{i} = xor i32 %cb{i}, %bx{i}\n%o{i} = add i32 %rb{i}, %cx{i}\n"
    )
    for place, source, wrong in (
        (swizzled(128), offset, False), (plain(128), "", False), (plain(128), offset, True), (swizzled(128), "", True),
    ):  # fmt: skip
        kernel = Kernel(MFMA_950, 128, copy=copy, offset=source)
        text = re.sub(r"(%h(\d) = .*) \{at\}", lambda m: f"{m[1]} {1024 * int(m[2])}", kernel.text())
        found = warnings(kernel, plain(128), place, text=text)
        assert bool(found) == wrong
        assert all("stored by 'call void @llvm.amdgcn." in w for w in found)


class Transposed(Kernel):
    """Column-major A read with ``ds.read.tr16.b64``: a group of 16 lanes reads 4 rows of k and gets its columns."""

    def _read(self, i: int) -> str:
        return (
            "%pr = getelementptr i32, ptr addrspace(4) @reads, i32 %t\n%ro = load i32, ptr addrspace(4) %pr, align 4\n"
            "%q0_0 = getelementptr i8, ptr addrspace(3) @lds, i32 %ro\n"
            "%f0 = call <4 x half> @llvm.amdgcn.ds.read.tr16.b64.v4f16(ptr addrspace(3) %q0_0)\n"
        )

    def run(self, write: Place, read: Place, **options: Any) -> Any:
        return super().run(write, lambda k, byte: read(*self._lane(k, byte)), **options)

    @staticmethod
    def _lane(k: int, byte: int) -> tuple[int, int]:
        # The table asks for the first element of lane (m, k // 4): that lane fetches another piece of its group.
        lane = byte // 2 + 16 * (k // 4)
        return 4 * (lane // 16) + lane % 16 // 4, lane % 4 * 8


def test_transposing_reads() -> None:
    shape = Shape("gfx950", "mfma.f32.16x16x16f16", "<4 x half>", "<4 x float>", ", i32 0, i32 0, i32 0")
    kernel = Transposed(shape, 64, turned=True)
    found = warnings(kernel, swizzled(64), plain(64))
    assert len(found) == 1 and found[0].startswith(f"k.ll:{line_of(kernel.text(), '%f0 = call')}: ")
    assert warnings(kernel, plain(64), swizzled(64)) and warnings(kernel, swizzled(64), swizzled(64, shift=1))
    for place in (plain(64), swizzled(64), swizzled(64, 1, 1), plain(80)):
        assert not warnings(kernel, place, place)


# ---- copies of gfx1250


def test_asynchronous_copies_to_lds() -> None:
    """Every lane names its own place in LDS."""
    copy = (
        "call void @llvm.amdgcn.global.load.async.to.lds.b128(ptr addrspace(1) %g{i}, ptr addrspace(3) %w{i}, i32 0, "
        "i32 0)\ncall void @llvm.amdgcn.s.wait.asynccnt(i16 0)\n"
    )
    kernel = Kernel(WMMA_1250, 128, copy=copy)
    assert not warnings(kernel, swizzled(128), swizzled(128))
    found = warnings(kernel, swizzled(128), plain(128))
    assert found and all("stored by 'call void @llvm.amdgcn.global.load.async.to.lds.b128(" in w for w in found)


def test_tensor_copies_with_gaps_between_the_rows() -> None:
    """The copy makes rows of 80 bytes out of rows of 64."""
    tile = words(data_size=2, tensor_dim0=16, tensor_dim1=16, tile_dim0=16, tile_dim1=16, stride0=128,
                 pad_enable=1, pad_interval=3, pad_amount=3)  # fmt: skip
    rest = [f"%rest{i} = getelementptr i8, ptr addrspace(3) @lds, i32 {16 * i}\n" for i in range(80)]
    rest += [f"store <4 x i32> zeroinitializer, ptr addrspace(3) %rest{i}, align 16\n" for i in range(80)]
    move = call("tensor.load.to.lds", tile, "%a", "a") + "call void @llvm.amdgcn.s.wait.tensorcnt(i16 0)\n"
    kernel = Kernel(WMMA_1250, 64, copy="", before="".join(rest) + move)
    assert not warnings(kernel, plain(80), plain(80))
    found = warnings(kernel, plain(80), plain(64))
    assert len(found) == 1 and "stored by 'call void @llvm.amdgcn.tensor.load.to.lds(" in found[0]
