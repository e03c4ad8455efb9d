"""The design is target-neutral: atoms of the host CPU through the same passes and code generation, run by the JIT."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.atoms.cpu import scalar
from flyllvm.atoms.cpu.scalar import CpuCopy, CpuFma
from flyllvm.codegen.client import run_host
from flyllvm.codegen.options import Options
from flyllvm.codegen.x86 import host_target
from flyllvm.compiler.pipeline import lower
from flyllvm.errors import AtomError, TargetError
from flyllvm.ir import types as t
from flyllvm.ir.builder import Builder
from flyllvm.ir.core import Kernel, Module
from flyllvm.ir.protocols import parse_payload
from flyllvm.layout import Layout
from flyllvm.target import CHIPS, Target

ONE = Layout(1, 1)
SSA = pytest.mark.parametrize("ssa", [True, False], ids=["ssa", "memory"])


@pytest.mark.llvm
@SSA
@pytest.mark.parametrize(("elem", "dtype"), [(t.F32, np.float32), (t.F64, np.float64)], ids=["f32", "f64"])
def test_a_matrix_product_of_fused_multiply_adds_runs_on_the_host(elem: t.FloatType, dtype: type, ssa: bool) -> None:
    """C (3, 4) = A (3, 5) * B (5, 4), row-major, one fma at a time, k innermost."""
    m, n, k = 3, 4, 5
    made = Kernel("k")
    a, b, c = (made.add_arg(t.PtrType(elem, "global", 8), name) for name in "abc")
    with Builder(made, host_target()) as builder:
        fma = builder.make_mma_atom(t.MmaAtomType(CpuFma(elem)))
        move = builder.make_copy_atom(t.CopyAtomType(CpuCopy(elem.bits), elem.bits))

        def at(ptr: object, index: int) -> object:
            return builder.make_view(builder.add_offset(ptr, index), ONE)

        for i in range(m):
            for j in range(n):
                total, x, y = (builder.alloca(elem, ONE) for _ in range(3))
                builder.copy_atom_call(move, at(c, i * n + j), total)
                for p in range(k):
                    builder.copy_atom_call(move, at(a, i * k + p), x)
                    builder.copy_atom_call(move, at(b, p * n + j), y)
                    builder.mma_atom_call(fma, total, x, y, total)
                builder.copy_atom_call(move, total, at(c, i * n + j))
    module = Module()
    module.kernels.append(made)
    text = lower(module, host_target(), Options(debug=False), ssa=ssa)
    assert ("x86_64" in text and "amdgcn" not in text and "alloca" not in text) or not ssa
    rng = np.random.default_rng(0)
    va, vb, vc = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
    got = run_host(text, "k", [("ptr", va.tobytes()), ("ptr", vb.tobytes()), ("ptr", vc.tobytes())])
    want = vc.copy()
    wide = np.float64 if dtype is np.float32 else np.longdouble
    for p in range(k):  # one rounding for each step
        want = (va[:, p, None].astype(wide) * vb[p].astype(wide) + want.astype(wide)).astype(dtype)
    np.testing.assert_array_equal(np.frombuffer(got[2], dtype).reshape(m, n), want)


@pytest.mark.llvm
@SSA
@pytest.mark.parametrize("bits", scalar.WIDTHS)
def test_a_copy_moves_its_bits_on_the_host(bits: int, ssa: bool) -> None:
    made = Kernel("k")
    src, dst = (made.add_arg(t.PtrType(t.I8, "global", 1), name) for name in ("src", "dst"))
    lay = Layout(bits // 8, 1)
    with Builder(made, host_target()) as b:
        atom = b.make_copy_atom(t.CopyAtomType(CpuCopy(bits), 8))
        held = b.alloca(t.I8, lay)
        b.copy_atom_call(atom, b.make_view(b.add_offset(src, 3), lay), held)
        b.copy_atom_call(atom, held, b.make_view(b.add_offset(dst, 1), lay))
    module = Module()
    module.kernels.append(made)
    text = lower(module, host_target(), Options(debug=False), ssa=ssa)
    data = bytes(range(80))
    got = run_host(text, "k", [("ptr", data), ("ptr", bytes(80))])[1]
    assert got == bytes(1) + data[3 : 3 + bits // 8] + bytes(79 - bits // 8)


@pytest.mark.parametrize("op", scalar.atoms(), ids=lambda op: op.name)
def test_cpu_atoms_read_back_and_are_refused_on_gpus(op: CpuCopy | CpuFma) -> None:
    assert parse_payload(op.mnemonic, op.params) == op
    op.check_target(host_target())
    for name in CHIPS:
        with pytest.raises(TargetError, match="targets with it: x86-64"):
            op.check_target(Target.parse(name))


@pytest.mark.parametrize(
    ("mnemonic", "params", "fix"),
    [
        ("fly_cpu.copy", "24", "one of: 8, 16, 32, 64, 128, 256, 512 bits"),
        ("fly_cpu.copy", "", "write the bits"),
        ("fly_cpu.fma", "1x1x1, (f16, f16) -> f16", "use one of: f32, f64"),
        ("fly_cpu.fma", "1x1x2, (f32, f32) -> f32", "write <1x1x1"),
    ],
)
def test_broken_cpu_atoms_are_refused(mnemonic: str, params: str, fix: str) -> None:
    with pytest.raises(AtomError, match=fix):
        parse_payload(mnemonic, params)
