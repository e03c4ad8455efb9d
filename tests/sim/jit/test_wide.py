"""Integers above 64 bits give the same on both engines."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate
from tests.sim.engines import both
from tests.sim.kernels import kernel

pytestmark = [pytest.mark.llvm, pytest.mark.sim]
PARAMS = "ptr addrspace(1) %in, ptr addrspace(1) %out"
LANES = 96
#: An operation on ``%x`` and ``%y`` of the type, the type of its result ``%r``.
ROWS = [
    *(("i128", f"%r = {op} i128 %x, %y", "i128") for op in ("and", "or", "xor")),
    *(("i128", f"%r = {op} i128 %x, {by}", "i128") for op in ("shl", "lshr") for by in (0, 5, 64, 100, 127)),
    *(("i96", f"%r = {op} i96 %x, {by}", "i96") for op in ("shl", "lshr") for by in (7, 32, 33, 64, 95)),
    *(("i128", f"%r = trunc i128 %x to {t}", t) for t in ("i64", "i32", "i16", "i8")),
    *(("i96", f"%r = trunc i96 %x to {t}", t) for t in ("i64", "i32", "i8")),
    ("i256", "%r = trunc i256 %x to i128", "i128"),
    ("i128", "%a = trunc i128 %x to i64\n%r = zext i64 %a to i128", "i128"),
    ("i128", "%a = trunc i128 %x to i16\n%r = zext i16 %a to i256", "i256"),
    ("i128", "%r = bitcast i128 %x to <4 x float>", "<4 x float>"),
    ("i128", "%v = bitcast i128 %x to <8 x half>\n%h = fneg <8 x half> %v\n%r = bitcast <8 x half> %h to i128", "i128"),
    ("i96", "%v = bitcast i96 %x to <3 x i32>\n%r = extractelement <3 x i32> %v, i32 2", "i32"),
    ("i128", "%odd = trunc i32 %t to i1\n%r = select i1 %odd, i128 %x, i128 1208925819614629174706176", "i128"),
    ("i128", "%r = xor i128 %x, -170141183460469231731687303715884105728", "i128"),
    ("i128", "%l0 = trunc i32 %t to i1\n%y0 = select i1 %l0, i128 %x, i128 %y\n%c = icmp eq i128 %x, %y0\n"
     "%r = zext i1 %c to i32", "i32"),
    ("i128", "%c = icmp ne i128 %x, %x\n%r = zext i1 %c to i32", "i32"),
    ("i128", "%s = insertvalue { i32, i128 } poison, i128 %x, 1\n%u = insertvalue { i32, i128 } %s, i32 3, 0\n"
     "%r = extractvalue { i32, i128 } %u, 1", "i128"),
]  # fmt: skip


def text_of(t: str, body: str, result: str) -> str:
    return kernel(
        f"""
%o = mul i32 %t, 64
%px = getelementptr i8, ptr addrspace(1) %in, i32 %o
%py = getelementptr i8, ptr addrspace(1) %px, i32 32
%po = getelementptr i8, ptr addrspace(1) %out, i32 %o
%x = load {t}, ptr addrspace(1) %px, align 4
%y = load {t}, ptr addrspace(1) %py, align 4
{body}
store {result} %r, ptr addrspace(1) %po, align 4
ret void
""",
        PARAMS,
    )


@pytest.mark.parametrize(("t", "body", "result"), ROWS, ids=[f"{n}-{row[0]}" for n, row in enumerate(ROWS)])
def test_wide_integers_agree(t: str, body: str, result: str) -> None:
    data = np.random.default_rng(0).integers(0, 256, LANES * 64).astype(np.uint8)
    out = np.full_like(data, 7)
    both(text_of(t, body, result), grid=1, block=LANES, args=[data, out])
    assert (out != 7).any()


@pytest.mark.parametrize("records", [LANES * 16, LANES * 16 - 700, 8])
def test_buffers_move_sixteen_bytes_in_components(records: int) -> None:
    text = kernel(
        f"""
%d = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %in, i16 0, i64 {records}, i32 0)
%e = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %out, i16 0, i64 {records}, i32 0)
%o = mul i32 %t, 16
%x = call i128 @llvm.amdgcn.raw.ptr.buffer.load.i128(ptr addrspace(8) %d, i32 %o, i32 0, i32 0)
%v = bitcast i128 %x to <4 x i32>
%n = add <4 x i32> %v, splat (i32 1)
%y = bitcast <4 x i32> %n to i128
call void @llvm.amdgcn.raw.ptr.buffer.store.i128(i128 %y, ptr addrspace(8) %e, i32 %o, i32 0, i32 0)
ret void
""",
        PARAMS,
    )
    data = np.random.default_rng(0).integers(0, 1 << 30, LANES * 4).astype(np.int32)
    out = np.zeros_like(data)
    both(text, grid=1, block=LANES, args=[data, out])
    assert (out[: records // 4] == data[: records // 4] + 1).all() and not out[records // 4 :].any()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("%r = add i128 %x, %y", "add of i128"),
        ("%r = ashr i128 %x, 3", "ashr of i128"),
        ("%by = zext i32 %t to i128\n%r = shl i128 %x, %by", "a shift of a wide integer that is no constant"),
        ("%c = icmp ult i128 %x, %y\n%r = select i1 %c, i128 %x, i128 %y", "icmp of i128"),
        ("%r = sext i32 %t to i128", "sext of i128"),
        ("%r = call i128 @llvm.bswap.i128(i128 %x)", "bswap.* of i128"),
    ],
)
def test_arithmetic_of_wide_integers_is_left_to_the_first_engine(body: str, words: str) -> None:
    data = np.zeros(LANES * 64, np.uint8)
    with pytest.raises(SimError, match=f"does not cover: line .*{words}"):
        simulate(
            text_of("i128", body, "i128"), grid=1, block=LANES, args=[data, data.copy()], checks="none", engine="jit"
        )
