"""Atomic copies: every operation and type in the simulator, what is refused, and where."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.atoms.rocdl import cdna3_buffer_atomic
from flyllvm.atoms.rocdl.cdna3_buffer_atomic import BufferAtomic
from flyllvm.atoms.universal_atomic import ORDERS, SCOPES, UniversalAtomic, atoms
from flyllvm.codegen import intrinsics
from flyllvm.codegen.options import Options
from flyllvm.compiler.pipeline import lower
from flyllvm.errors import AtomError, TargetError
from flyllvm.ir import types as t
from flyllvm.ir.builder import Builder
from flyllvm.ir.core import Kernel, Module
from flyllvm.ir.protocols import parse_payload
from flyllvm.layout import Layout
from flyllvm.sim import numerics, simulate
from flyllvm.target import CHIPS, Target
from tests.atoms.emitter import Recorder, operand, value

DTYPES = {
    "i32": np.int32, "i64": np.int64, "f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
UPDATES = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "xchg": lambda x, y: y,
    "swap": lambda x, y: y,
}


def kernel(op: UniversalAtomic | BufferAtomic, target: Target, *, shared: bool = False) -> str:
    """LLVM IR of ``k(src, dst)``: lane ``t`` updates place ``t / 2`` with its own value: lanes meet in pairs."""
    made = Kernel("k")
    made.attrs["known_block_size"] = (target.wave_size, 1, 1)
    src, dst = (made.add_arg(t.PtrType(op.elem, "global", 16), name) for name in ("src", "dst"))
    lay = Layout(op.count, 1)
    with Builder(made, target) as b:
        lane = b.thread_id()
        held = b.alloca(op.elem, lay)
        plain = b.make_copy_atom(t.CopyAtomType(parse_payload("fly.universal_copy", str(op.bit_size)), op.elem.bits))
        b.copy_atom_call(plain, b.make_view(b.add_offset(src, b.index_mul(lane, op.count)), lay), held)
        place = b.index_mul(b.index_div(lane, 2), op.count)
        base = b.make_buffer(dst, b.constant(4096, t.I64)) if isinstance(op, BufferAtomic) else dst
        where = b.make_view(b.add_offset(base, place), lay)
        if shared:
            # Both lanes of a pair write the same start value before one of them is updated.
            lds = b.make_view(b.add_offset(b.shared(op.elem, 1024, 16), place), lay)
            kept = b.alloca(op.elem, lay)
            b.copy_atom_call(plain, where, kept)
            b.copy_atom_call(plain, kept, lds)
            b.barrier()
            b.copy_atom_call(b.make_copy_atom(t.CopyAtomType(op, op.elem.bits)), held, lds)
            b.barrier()
            b.copy_atom_call(plain, lds, kept)
            b.copy_atom_call(plain, kept, where)
        else:
            b.copy_atom_call(b.make_copy_atom(t.CopyAtomType(op, op.elem.bits)), held, where)
    module = Module()
    module.kernels.append(made)
    return lower(module, target, Options(debug=False))


def check(op: UniversalAtomic | BufferAtomic, operation: str, target: Target, *, shared: bool = False) -> None:
    """Runs the kernel on small integers, in the type's own bits."""
    rng = np.random.default_rng(3)
    dtype = DTYPES[str(op.elem)]
    lanes = target.wave_size
    is_float = isinstance(op.elem, t.FloatType)
    low = -8 if is_float or operation in ("max", "min") else 0
    src = rng.integers(low, 9, (lanes, op.count))
    dst = rng.integers(low, 9, (lanes // 2, op.count))
    unsigned = operation in ("umax", "umin")
    want = dst.copy()
    if unsigned:  # a negative number is a large one
        src[::3] -= 20
        want, dst = dst.astype(np.uint64), dst
        update = UPDATES[operation[1:]]
        for lane in range(lanes):
            want[lane // 2] = update(want[lane // 2], src[lane].astype(np.uint64))
    elif operation in ("inc", "dec"):
        for lane in range(lanes):
            x, limit = want[lane // 2], src[lane]
            if operation == "inc":
                want[lane // 2] = np.where(x >= limit, 0, x + 1)
            else:
                want[lane // 2] = np.where((x == 0) | (x > limit), limit, x - 1)
    else:
        for lane in range(lanes):
            want[lane // 2] = UPDATES[operation](want[lane // 2], src[lane])

    def encoded(x: np.ndarray) -> np.ndarray:
        if str(op.elem) == "bf16":
            return numerics.encode_bf16(x.astype(np.float32))
        return x.astype(np.int64).astype(dtype) if not is_float else x.astype(dtype)

    got = encoded(dst).reshape(-1).copy()
    text = kernel(op, target, shared=shared)
    args = [encoded(src).reshape(-1).copy(), got]
    simulate(text, kernel="k", grid=(1,), block=(lanes,), args=args, target=target)
    np.testing.assert_array_equal(got, encoded(want).reshape(-1))


@pytest.mark.sim
@pytest.mark.parametrize("op", atoms(), ids=lambda op: op.name)
@pytest.mark.parametrize("shared", [False, True], ids=["global", "shared"])
def test_lanes_that_meet_update_one_after_the_other(op: UniversalAtomic, shared: bool) -> None:
    check(op, op.operation, Target.parse("gfx942"), shared=shared)


@pytest.mark.sim
@pytest.mark.parametrize("op", cdna3_buffer_atomic.atoms(), ids=lambda op: op.name)
def test_buffer_atomics_update_on_every_kind_of_chip(op: BufferAtomic) -> None:
    for processor in {CHIPS[p].family: p for p in op.targets}.values():
        check(op, op.row.operation, Target.parse(processor))


def test_buffer_atomics_are_llvms_on_exactly_its_targets() -> None:
    for op in cdna3_buffer_atomic.atoms():
        known = intrinsics.lookup(op.intrinsic)
        assert known is not None and set(known.archs) == set(op.targets)


@pytest.mark.parametrize(
    ("operation", "type_", "processor", "offer"),
    [
        ("add", "vector<2xbf16>", "gfx942", r"types with add: i32, i64, f32, f64, vector<2xf16>"),
        ("add", "vector<2xf16>", "gfx1100", "operations on vector<2xf16>: none"),
        ("max", "f32", "gfx942", "operations on f32: add"),
        ("add", "f64", "gfx1201", "operations on f64: none"),
        ("max", "f64", "gfx1100", "types with max: i32, i64, f32"),
    ],
)
def test_what_a_chip_lacks_is_refused_with_what_it_has(operation: str, type_: str, processor: str, offer: str) -> None:
    with pytest.raises(TargetError, match=offer):
        BufferAtomic(operation, type_).check_target(Target.parse(processor))


@pytest.mark.parametrize(
    ("spelling", "fix"),
    [
        ("!fly.universal_atomic<and, f32>", "use add, sub, max, min, xchg"),
        ("!fly.universal_atomic<mul, f32>", "one of: add, sub, max"),
        ("!fly.universal_atomic<add, f8E5M2>", "one of: i32, i64, f16"),
        ("!fly.universal_atomic<add, f32, scope = device>", "one of: system, agent"),
        ("!fly.universal_atomic<add, f32, order = relaxed>", "one of: monotonic, acquire, release, acq_rel, seq_cst"),
        ("!fly.universal_atomic<xchg, vector<2xf16>>", "use add, sub, max, min$"),
        ("!fly_rocdl.cdna3.buffer_atomic<and, f32>", "on f32: add, max, min"),
        ("!fly_rocdl.cdna3.buffer_atomic<add, f16>", "one of: i32, i64, f32"),
        ("!fly_rocdl.cdna3.buffer_atomic<add>", "write <add, f32>"),
    ],
)
def test_unknown_operations_types_scopes_and_orders_are_refused_with_the_legal_ones(spelling: str, fix: str) -> None:
    mnemonic, _, rest = spelling[1:].partition("<")
    with pytest.raises(AtomError, match=fix):
        parse_payload(mnemonic, rest[:-1])


def test_scope_and_order_are_part_of_the_spelling_and_of_the_instruction() -> None:
    for scope, text in SCOPES.items():
        for order in ORDERS:
            op = UniversalAtomic("max", t.I32, scope, order)
            em = Recorder()
            op.emit_atom_call_ssa(em, None, em.const(op.elem.storage, 3), operand(t.I32, "global", "p"), None, None)
            tail = f' syncscope("{text}")' if text else ""
            assert f"atomicrmw max ptr addrspace(1) %p, i32 3{tail} {order}, align 4" in em.text()
    assert UniversalAtomic("add", "f32").params == "add, f32"
    assert UniversalAtomic("add", "f32", "agent", "release").params == "add, f32, scope = agent, order = release"


def test_a_predicate_guards_the_update() -> None:
    em = Recorder()
    op = UniversalAtomic("add", "f32")
    op.emit_atom_call(
        em, None, operand(t.F32, "register", "r"), operand(t.F32, "global", "p"), value(t.I1.storage, "q")
    )
    head, _, behind = em.text().partition("then.")
    assert "br i1 %q" in head and "atomicrmw fadd" in behind and "atomicrmw" not in head


@pytest.mark.parametrize("op", [UniversalAtomic("add", "f32"), BufferAtomic("add", "f32")], ids=lambda op: op.name)
def test_operands_of_other_spaces_and_elements_are_refused(op: UniversalAtomic | BufferAtomic) -> None:
    space = "buffer_desc" if isinstance(op, BufferAtomic) else "global"
    held = t.PtrType(t.F32, "register")
    op.check_operands(held, t.PtrType(t.F32, space))
    with pytest.raises(AtomError, match="the source is in registers"):
        op.check_operands(t.PtrType(t.F32, space), held)
    with pytest.raises(AtomError, match=r"cannot update elements of f16(?s:.*)fx\.recast_iter"):
        op.check_operands(held, t.PtrType(t.F16, space))
