"""Several views of one pointer, as IR written by hand may have them: other layouts, other starts, views of views."""

from __future__ import annotations

import numpy as np
import pytest

import flyllvm
import flyllvm.atoms  # the parser knows the atoms that are loaded
from flyllvm.codegen import Options
from flyllvm.compiler.pipeline import lower
from flyllvm.errors import CodegenError
from flyllvm.ir.core import Module
from flyllvm.ir.parser import parse_kernel
from tests.passes.kernels import GFX942

FMA = "!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>"
COPY = "!fly.copy_atom<!fly.universal_copy<128>, 32>"
ROOM = "!fly.ptr<f32, register, align<16>>"


def memref(layout: str, elem: str = "f32") -> str:
    return f"!fly.memref<{elem}, register, align<16>, {layout}>"


def run(body: str, out: np.ndarray, ssa: bool) -> np.ndarray:
    """Runs 64 lanes; ``%x`` is where the lane's row of the result begins."""
    elem = {"float32": "f32", "int32": "i32"}[out.dtype.name]
    text = f"""
    gpu.func @k(%all: !fly.ptr<{elem}, global>) kernel
        attributes {{stage = "fly", known_block_size = array<i32: 64, 1, 1>}} {{
      %t = gpu.thread_id x
      %width = arith.constant {out.shape[1]} : i32
      %row = arith.muli %t, %width : i32
      %x = fly.add_offset(%all, %row) : (!fly.ptr<{elem}, global>, i32) -> !fly.ptr<{elem}, global>
      {body}
      gpu.return
    }}"""
    ir = lower(Module([parse_kernel(text, "k.fly")]), GFX942, Options(debug=False), ssa=ssa)
    flyllvm.simulate(ir, grid=1, block=64, args=[out], target=GFX942)
    return out


@pytest.mark.sim
@pytest.mark.parametrize("ssa", [True, False])
@pytest.mark.parametrize("layout", ["(1,2,2):(1,1,2)", "(1,2,2):(1,2,1)", "(1,2,2):(1,0,0)"])
def test_c_keeps_its_own_layout_where_it_shares_the_pointer_of_d(layout: str, ssa: bool) -> None:
    strides = [int(s) for s in layout.rstrip(")").split("(")[-1].split(",")]
    want = [1.0, 10.0, 100.0, 1000.0]
    for m in range(2):
        for n in range(2):
            want[m + 2 * n] = want[strides[1] * m + strides[2] * n] + 1
    ones = "(1,2):(1,1)"
    body = f"""
    %fma = fly.make_mma_atom : {FMA}
    %acc = fly.memref.alloca : {memref("4:1")}
    %one = fly.memref.alloca : {memref("2:1")}
    %p = fly.get_iter(%acc) : ({memref("4:1")}) -> {ROOM}
    %q = fly.get_iter(%one) : ({memref("2:1")}) -> {ROOM}
    %start = arith.constant dense<[1.0, 10.0, 100.0, 1000.0]> : vector<4xf32>
    %ones = arith.constant dense<1.0> : vector<2xf32>
    fly.ptr.store(%start, %p) : (vector<4xf32>, {ROOM}) -> ()
    fly.ptr.store(%ones, %q) : (vector<2xf32>, {ROOM}) -> ()
    %ld = fly.static : !fly.layout<(1,2,2):(1,1,2)>
    %lc = fly.static : !fly.layout<{layout}>
    %la = fly.static : !fly.layout<{ones}>
    %d = fly.make_view(%p, %ld) : ({ROOM}, !fly.layout<(1,2,2):(1,1,2)>) -> {memref("(1,2,2):(1,1,2)")}
    %c = fly.make_view(%p, %lc) : ({ROOM}, !fly.layout<{layout}>) -> {memref(layout)}
    %a = fly.make_view(%q, %la) : ({ROOM}, !fly.layout<{ones}>) -> {memref(ones)}
    fly.gemm(%fma, %d, %a, %a, %c) :
      ({FMA}, {memref("(1,2,2):(1,1,2)")}, {memref(ones)}, {memref(ones)}, {memref(layout)}) -> ()
    %done = fly.ptr.load(%p) : ({ROOM}) -> vector<4xf32>
    fly.ptr.store(%done, %x) : (vector<4xf32>, !fly.ptr<f32, global>) -> ()
    """
    assert np.array_equal(run(body, np.zeros((64, 4), np.float32), ssa), np.tile(np.float32(want), (64, 1)))


@pytest.mark.sim
@pytest.mark.parametrize("ssa", [True, False])
def test_the_pointer_of_a_register_view_with_gaps_is_the_pointer_it_was_made_from(ssa: bool) -> None:
    ptr = "!fly.ptr<i32, register, align<16>>"
    body = f"""
    %r = fly.memref.alloca : {memref("8:1", "i32")}
    %p = fly.get_iter(%r) : ({memref("8:1", "i32")}) -> {ptr}
    %l = fly.static : !fly.layout<(2,2):(1,4)>
    %v = fly.make_view(%p, %l) : ({ptr}, !fly.layout<(2,2):(1,4)>) -> {memref("(2,2):(1,4)", "i32")}
    %q = fly.get_iter(%v) : ({memref("(2,2):(1,4)", "i32")}) -> {ptr}
    fly.ptr.store(%t, %q) : (i32, {ptr}) -> ()
    %y = fly.ptr.load(%p) : ({ptr}) -> i32
    fly.ptr.store(%y, %x) : (i32, !fly.ptr<i32, global>) -> ()
    """
    assert run(body, np.zeros((64, 1), np.int32), ssa)[:, 0].tolist() == list(range(64))


#: 8 numbers of each lane go through a swizzle that moves runs of 16 bytes; the access starts in the middle of one.
SWIZZLED = "shared, align<{}>, S<2,4,3>"


def straddling(access: str) -> str:
    lane = f"!fly.ptr<i32, {SWIZZLED.format(32)}>"
    stores = "".join(
        f"""
        %k{i} = arith.constant {i} : i32
        %w{i} = arith.addi %o, %k{i} : i32
        %e{i} = fly.add_offset(%a, %k{i}) : ({lane}, i32) -> !fly.ptr<i32, shared, S<2,4,3>>
        fly.ptr.store(%w{i}, %e{i}) : (i32, !fly.ptr<i32, shared, S<2,4,3>>) -> ()"""
        for i in range(8)
    )
    whole = "!fly.ptr<i32, shared, align<1024>, S<2,4,3>>"
    half = f"!fly.ptr<i32, {SWIZZLED.format(8)}>"
    view = f"!fly.memref<i32, {SWIZZLED.format(8)}, 4:1>"
    load = {
        "load_vec": f"%q = fly.memref.load_vec(%v) : ({view}) -> vector<4xi32>",
        "load": f"%q = fly.ptr.load(%b) : ({half}) -> vector<4xi32>",
        "copy": f"""
        %copy = fly.make_copy_atom {{valBits = 32 : i32}} : {COPY}
        %r = fly.memref.alloca : {memref("4:1", "i32")}
        fly.copy(%copy, %v, %r) : ({COPY}, {view}, {memref("4:1", "i32")}) -> ()
        %q = fly.memref.load_vec(%r) : ({memref("4:1", "i32")}) -> vector<4xi32>""",
    }[access]
    return f"""
    %s = fly.make_ptr {{allocBytes = 2048 : i32, allocAlign = 1024 : i32, symbol = "lds0"}}
      : !fly.ptr<i32, shared, align<1024>>
    %sw = fly.apply_swizzle(%s) : (!fly.ptr<i32, shared, align<1024>>) -> {whole}
    %c8 = arith.constant 8 : i32
    %o = arith.muli %t, %c8 : i32
    %a = fly.add_offset(%sw, %o) : ({whole}, i32) -> {lane}
    %b = fly.add_offset(%a, %k2) : ({lane}, i32) -> {half}
    %l = fly.static : !fly.layout<4:1>
    %v = fly.make_view(%b, %l) : ({half}, !fly.layout<4:1>) -> {view}
    {load}
    fly.ptr.store(%q, %x) : (vector<4xi32>, !fly.ptr<i32, global>) -> ()
    """.replace("    %b =", stores + "\n    %b =")


@pytest.mark.sim
@pytest.mark.parametrize("ssa", [True, False])
def test_a_vector_that_starts_inside_of_what_a_swizzle_moves_is_read_in_pieces(ssa: bool) -> None:
    got = run(straddling("load_vec"), np.zeros((64, 4), np.int32), ssa)
    assert np.array_equal(got, np.arange(64)[:, None] * 8 + 2 + np.arange(4))


@pytest.mark.parametrize("access", ["load", "copy"])
def test_one_access_that_may_straddle_what_a_swizzle_moves_is_refused(access: str) -> None:
    with pytest.raises(CodegenError, match=r"(?s)16 bytes from a multiple of 8 .*S<2,4,3>.*multiple of 16 .*fx.assume"):
        run(straddling(access), np.zeros((64, 4), np.int32), True)


@pytest.mark.sim
@pytest.mark.parametrize("ssa", [True, False])
def test_a_predicate_in_registers_guards_a_copy_from_memory_to_memory(ssa: bool) -> None:
    view, flag = "!fly.memref<i32, global, 1:1>", "!fly.memref<i1, register, 1:1>"
    atom = "!fly.copy_atom<!fly.universal_copy<32>, 32>"
    ptr = "!fly.ptr<i32, global>"
    body = f"""
    %copy = fly.make_copy_atom {{valBits = 32 : i32}} : {atom}
    %pred = fly.memref.alloca : {flag}
    %at = fly.get_iter(%pred) : ({flag}) -> !fly.ptr<i1, register>
    %limit = arith.constant 20 : i32
    %below = arith.cmpi slt, %t, %limit : i32
    fly.ptr.store(%below, %at) : (i1, !fly.ptr<i1, register>) -> ()
    %one = arith.constant 1 : i32
    %y = fly.add_offset(%x, %one) : ({ptr}, i32) -> {ptr}
    fly.ptr.store(%t, %y) : (i32, {ptr}) -> ()
    %l = fly.static : !fly.layout<1:1>
    %from = fly.make_view(%y, %l) : ({ptr}, !fly.layout<1:1>) -> {view}
    %to = fly.make_view(%x, %l) : ({ptr}, !fly.layout<1:1>) -> {view}
    fly.copy_atom_call(%copy, %from, %to, %pred) : ({atom}, {view}, {view}, {flag}) -> ()
    """
    got = run(body, np.full((64, 2), -1, np.int32), ssa)
    assert got[:, 0].tolist() == [t if t < 20 else -1 for t in range(64)]
