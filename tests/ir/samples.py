"""Kernels that together hold every operation of the IR, each well typed."""

from __future__ import annotations

from collections.abc import Callable

import flyllvm.atoms  # the families of atoms, for types that name them
from flyllvm.ir import types as t
from flyllvm.ir.builder import Builder
from flyllvm.ir.core import Kernel, Value
from flyllvm.ir.ops_arith import CASTS, FLOAT_BINARY, FLOAT_UNARY, INT_BINARY, INT_UNARY
from flyllvm.ir.protocols import parse_payload
from flyllvm.layout import Dyn, Layout, parse
from flyllvm.target import Target

GFX942 = Target.parse("gfx942")
F16X4, F32X4 = t.VectorType(4, t.F16), t.VectorType(4, t.F32)
GLOBAL_F16 = t.PtrType(t.F16, "global")
REG_F16, REG_F32 = t.PtrType(t.F16, "register", 8), t.PtrType(t.F32, "register", 16)
FOUR = Layout(4, 1)
assert flyllvm.atoms


def mma_type(params: str = "16x16x16, (f16, f16) -> f32", mnemonic: str = "fly_rocdl.cdna3.mfma") -> t.MmaAtomType:
    return t.MmaAtomType(parse_payload(mnemonic, params))


def copy_type(mnemonic: str = "fly.universal_copy", params: str = "64", val_bits: int = 16) -> t.CopyAtomType:
    return t.CopyAtomType(parse_payload(mnemonic, params), val_bits)


def start(name: str, *args: tuple[t.Type, str], **attrs: object) -> tuple[Builder, list[Value]]:
    """A builder over a new kernel with a known location, and its arguments."""
    kernel = Kernel(name)
    kernel.attrs.update(attrs)
    return Builder(kernel, GFX942), [kernel.add_arg(type_, arg) for type_, arg in args]


def finish(b: Builder) -> Kernel:
    b.emit("gpu.return")
    return b.kernel


def arithmetic() -> Kernel:
    """Every operation on numbers and vectors."""
    args = [(t.I32, "i"), (t.I32, "j"), (t.F32, "x"), (t.F32, "y"), (t.I1, "c"), (t.I64, "wide"), (t.F16, "h")]
    b, (i, j, x, y, c, wide, h) = start("arithmetic", *args)
    for name in INT_BINARY:
        b.binary(name, i, j)
    b.binary("arith.addi", i, j, overflow=("nsw", "nuw"))
    for name in FLOAT_BINARY:
        b.binary(name, x, y)
    b.binary("arith.mulf", x, y, fastmath=("contract", "reassoc"))
    for name in INT_UNARY:
        b.unary(name, i)
    for name in FLOAT_UNARY:
        b.unary(name, x)
    b.unary("math.exp2", x, fastmath=("afn",))
    b.fma(x, y, x)
    b.fma(x, y, x, fastmath=("contract",))
    b.cmpi("slt", i, j)
    b.cmpf("oge", x, y)
    b.select(c, x, y)
    small, from_kind = t.like, {"i": {"<": i, ">": wide, "*": i}, "f": {"<": h, ">": x, "*": x}}
    for name, (kinds, _) in CASTS.items():
        to = {"ii<": t.I64, "ii>": t.I16, "ff<": t.F32, "ff>": t.BF16, "if*": t.F32, "fi*": t.I32}[kinds]
        b.emit(name, [from_kind[kinds[0]][kinds[2]]], [small(i.type, to)])
    for value, type_ in (
        (7, t.I32), (-1, t.I64), (1, t.I1), (0, t.I1), (1.5, t.F16), (0.1, t.F64), (-0.0, t.F32), (1e-30, t.F32),
        (float("inf"), t.F32), (float("-inf"), t.BF16), (float("nan"), t.F16), (float("inf"), t.F8E5M2),
        (3, t.F32), ((1, 2, 3), t.VectorType(3, t.I8)), (0, t.VectorType(2, t.I1)), (0.0, F32X4),
        ((1.0, float("nan")), t.VectorType(2, t.F64)), (1 << 100, t.I128),
    ):  # fmt: skip
        b.emit("arith.constant", (), [type_], {"value": value})
    v = b.broadcast(x, 4)
    w = b.insert(y, v, 2)
    u = b.insert(y, w, i)
    b.emit("vector.extract", [w], [t.F32], {"position": 1})
    b.extract(u, j)
    part = b.emit("vector.extract_strided_slice", [u], [t.VectorType(2, t.F32)], {"offset": 1, "size": 2}).results[0]
    b.insert_slice(part, w, 2)
    b.concat([part, x, u])
    b.emit("vector.shuffle", [w, u], [t.VectorType(3, t.F32)], {"mask": (0, 7, 3)})
    b.emit("vector.shuffle", [w, u], [t.F32], {"mask": (5,)})
    b.emit("vector.reduction", [u], [t.F32], {"kind": "add", "fastmath": ("reassoc",)})
    b.emit("vector.reduction", [u], [t.F32], {"kind": "maxnumf"})
    b.bitcast(x, t.VectorType(2, t.I16))
    b.emit("ub.poison", (), [F16X4])
    b.select(b.cmpf("olt", v, w), v, w)
    return finish(b)


def control() -> Kernel:
    """Every operation of control flow, ids, barriers and calls."""
    b, (n, x) = start("control", (t.I32, "n"), (t.F32, "x"), known_block_size=(64, 2, 1))
    ids = [getattr(b, kind)(d) for kind in ("thread_id", "block_id", "grid_dim") for d in "xy"]
    b.emit("gpu.block_dim", (), [t.I32], {"dimension": "z"})
    b.lane_id()
    less = b.cmpi("slt", ids[0], n)
    b.if_(less, b.barrier)
    b.if_(less, b.barrier, lambda: b.barrier(fence=False))
    (y,) = b.if_(less, lambda: [x], lambda: [b.addf(x, x)])
    b.for_(0, n, 1, [], lambda i: b.barrier())
    first, _ = b.for_(ids[1], n, 4, [y, n], lambda i, a, k: [b.mulf(a, y), b.addi(k, i)])
    first.name = "sum"
    b.while_([n], lambda k: (b.cmpi("sgt", k, ids[0]), [k, first]), lambda k, s: [b.subi(k, ids[0])])
    b.while_([], lambda: (less, []), b.barrier)
    b.while_([n], lambda k: (less, []), lambda: [n])
    b.emit("llvm.fence", (), (), {"ordering": "release", "syncscope": "workgroup"})
    b.emit("llvm.fence", (), (), {"ordering": "seq_cst"})
    b.emit("gpu.printf", [n, first], (), {"format": 'n = %d, "x" = %f\n\t\\'})
    b.emit("gpu.printf", [], (), {"format": ""})
    b.intrinsic("llvm.amdgcn.readfirstlane.i32", t.I32, [n])
    b.intrinsic("llvm.amdgcn.s.setprio", None, [2], 16)
    b.intrinsic("llvm.amdgcn.update.dpp.i32", t.I32, [n, n, 0x111, 15, 15, 1], [32, 32, 32, 1], pure=True)
    return finish(b)


def pointers() -> Kernel:
    """Pointers, views, layouts and plain memory, at stage fly."""
    args = [(GLOBAL_F16, "a"), (t.I32, "m"), (t.I64, "k")]
    b, (a, m, k) = start("pointers", *args)
    m.divisibility = b.kernel.arg_attrs[1]["divisibility"] = 8
    b.kernel.arg_attrs[0].update(align=16, noalias=True, readonly=False)
    offset = b.int_tuple((128, (m, k)))
    shape, stride = b.int_tuple((m, 8)), b.int_tuple((1, m))
    dynamic = t.LayoutType(Layout((Dyn(32, 8), 8), (1, Dyn(32, 8))))
    layout = b.emit("fly.make_layout", [shape, stride], [dynamic]).results[0]
    inner = b.emit("fly.static", (), [t.LayoutType(parse("S<2,3,3>"))]).results[0]
    zero = b.int_tuple(0)
    composed = b.emit("fly.make_composed_layout", [inner, zero, layout], [
        t.LayoutType(parse("S<2,3,3> o 0 o (?{div=8},8):(1,?{div=8})"))
    ]).results[0]  # fmt: skip
    b.emit("fly.static", (), [t.LayoutType(parse("[4|*|(2,4):(1,8)]"))])
    b.emit("fly.static", (), [t.IntTupleType((2, (3, 4)))])
    b.emit("fly.static", (), [copy_type()])
    view = b.emit("fly.make_view", [a, layout], [t.MemRefType(GLOBAL_F16, dynamic.value)]).results[0]
    b.emit("fly.make_view", [a, composed], [t.MemRefType(GLOBAL_F16, composed.type.value)])
    identity = parse("(4,8):(1E0,1E1)")
    b.emit("fly.make_view", [b.int_tuple((0, 0)), b.layout(identity)], [t.CoordTensorType((0, 0), identity)])
    it = b.emit("fly.get_iter", [view], [GLOBAL_F16]).results[0]
    moved = b.add_offset(it, m)
    b.emit("fly.add_offset", [it, offset], [GLOBAL_F16])
    shared = b.shared(t.F16, 4096)
    b.apply_swizzle(shared, parse("S<3,3,3>"))
    dyn = b.dyn_shared(t.I8)
    b.recast_iter(dyn, t.F32)
    records = b.constant(4096, t.I64)
    buffer = b.make_buffer(a, records)
    b.add_offset(buffer, 4)
    address = b.emit("fly.ptrtoint", [moved], [t.I64]).results[0]
    b.emit("fly.inttoptr", [address], [GLOBAL_F16])
    b.ptr_store(b.ptr_load(moved, 4), it)
    counter = b.shared(t.I32, 4)
    kinds = {"kind": "add", "syncscope": "agent"}
    b.emit("fly.atomic_rmw", [b.constant(1, t.I32), counter], [t.I32], kinds)
    b.emit("fly.assume", [m], [t.I32], {"divisibility": 16})
    reg = b.alloca(t.F16, FOUR)
    b.emit("fly.memref.store", [b.emit("fly.memref.load", [reg, m], [t.F16]).results[0], reg, b.int_tuple(2)])
    b.emit("fly.memref.store_vec", [b.emit("fly.memref.load_vec", [reg], [F16X4]).results[0], reg])
    return finish(b)


def _fragments(b: Builder, *elems: t.ScalarType) -> list[Value]:
    return [b.alloca(e, FOUR) for e in elems]


def tiled() -> Kernel:
    """Whole copies and products, at stage fly."""
    b, (src, dst) = start("tiled", (t.MemRefType(GLOBAL_F16, Layout((4, 16), (1, 4))), "src"), (GLOBAL_F16, "p"),
                          known_block_size=(256, 1, 1))  # fmt: skip
    atom = b.make_copy_atom(copy_type())
    tiled_copy = b.make_tiled_copy(atom, Layout((16, 4), (4, 1)), parse("[4|16]"))
    mma = b.make_mma_atom(mma_type())
    tiled_mma = b.make_tiled_mma(mma, Layout((2, 2, 1), (1, 2, 0)), parse("[*|*|*]"))
    pred = b.alloca(t.I1, Layout(1, 0))
    view = b.make_view(dst, Layout((4, 16), (1, 4)))
    b.emit("fly.copy", [tiled_copy, src, view])
    b.emit("fly.copy", [atom, src, view, pred])
    a, x, c = _fragments(b, t.F16, t.F16, t.F32)
    b.emit("fly.gemm", [tiled_mma, c, a, x, c], (), {"traversal_order": "mnk"})
    b.emit("fly.gemm", [mma, c, a, x, c], (), {"traversal_layout": Layout((1, 1, 1), (0, 0, 0))})
    return finish(b)


def atom_calls() -> Kernel:
    """Atom calls in memory form, with state, at stage atoms."""
    b, (p, n) = start("atom_calls", (GLOBAL_F16, "p"), (t.I32, "n"), known_block_size=(64, 1, 1))
    b.kernel.attrs["stage"] = "atoms"
    atom = b.make_copy_atom(copy_type("fly_rocdl.cdna3.buffer_copy", "64"))
    atom = b.set_value(atom, "soffset", n)
    a, x, c = _fragments(b, t.F16, t.F16, t.F32)
    src = b.make_view(b.make_buffer(p, b.constant(1 << 20, t.I64)), FOUR)
    b.copy_atom_call(atom, src, a)
    b.copy_atom_call(atom, src, x, b.cmpi("slt", n, b.constant(4, t.I32)))
    b.mma_atom_call(b.make_mma_atom(mma_type()), c, a, x, c)
    return finish(b)


def ssa_calls() -> Kernel:
    """Atom calls on values, at stage ssa."""
    b, (p, n, old) = start("ssa_calls", (GLOBAL_F16, "p"), (t.I32, "n"), (F16X4, "old"), known_block_size=(64, 1, 1))
    b.kernel.attrs["stage"] = "ssa"
    atom = b.make_copy_atom(copy_type())
    mma = b.make_mma_atom(mma_type())
    src, dst = b.make_view(p, FOUR), b.make_view(b.add_offset(p, n), FOUR)
    a = b.emit("fly.copy_atom_call_ssa", [atom, src], [F16X4], {"segments": (1, 0, 0, 0)}).results[0]
    pred = b.cmpi("slt", n, b.constant(4, t.I32))
    x = b.emit("fly.copy_atom_call_ssa", [atom, src, pred, old], [F16X4], {"segments": (1, 0, 1, 1)}).results[0]
    c = b.constant(0.0, F32X4)
    (c,) = b.for_(0, n, 1, [c], lambda i, acc: [b.emit("fly.mma_atom_call_ssa", [mma, a, x, acc], [F32X4]).results[0]])
    c.name = "acc"
    b.emit("fly.copy_atom_call_ssa", [atom, b.cast("arith.truncf", c, t.F16), dst], (), {"segments": (1, 1, 0, 0)})
    return finish(b)


SAMPLES: dict[str, Callable[[], Kernel]] = {
    f.__name__: f for f in (arithmetic, control, pointers, tiled, atom_calls, ssa_calls)
}  # fmt: skip
