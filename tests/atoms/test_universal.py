"""Universal copies between every pair of address spaces, with the alignment that is known."""

from __future__ import annotations

import re

import numpy as np
import pytest

from flyllvm.atoms.universal import UniversalCopy, UniversalFma
from flyllvm.codegen.options import Options
from flyllvm.compiler.pipeline import lower
from flyllvm.ir import types as t
from flyllvm.ir.builder import Builder
from flyllvm.ir.core import Kernel, Module, Value
from flyllvm.layout import Layout
from flyllvm.sim import simulate
from flyllvm.target import Target
from tests.atoms.emitter import Recorder, value

SPACES = ("global", "shared", "generic", "register")
PAIRS = [(src, dst) for src in SPACES for dst in SPACES]
BITS = (8, 16, 32, 64, 96, 128)


def kernel(bits: int, src: str, dst: str, target: Target, align: int, ssa: bool) -> str:
    """LLVM IR of ``k(a, b)``: lane ``t`` copies its piece of a to b, from ``src`` to ``dst`` memory on the way."""
    count = bits // 8
    made = Kernel("k")
    made.attrs["known_block_size"] = (32, 1, 1)
    spaces = ["generic" if x == "generic" else "global" for x in (src, dst)]
    a, b_ = (made.add_arg(t.PtrType(t.I8, space, align), name) for space, name in zip(spaces, "ab"))
    lay = Layout(count, 1)
    with Builder(made, target) as b:
        start = b.index_mul(b.thread_id(), count)
        atom = b.make_copy_atom(t.CopyAtomType(UniversalCopy(bits), 8))

        def place(space: str, pointer: Value) -> tuple[Value, Value]:
            """The operand in its space, and where the argument's piece is."""
            outside = b.make_view(b.add_offset(pointer, start), lay)
            if space == "register":
                return b.alloca(t.I8, lay), outside
            if space == "shared":
                return b.make_view(b.add_offset(b.shared(t.I8, 32 * count, 16), start), lay), outside
            return outside, outside

        source, outside_a = place(src, a)
        target_view, outside_b = place(dst, b_)
        if source is not outside_a:
            b.copy_atom_call(atom, outside_a, source)
        b.copy_atom_call(atom, source, target_view)
        if target_view is not outside_b:
            b.copy_atom_call(atom, target_view, outside_b)
    module = Module()
    module.kernels.append(made)
    return lower(module, target, Options(debug=False), ssa=ssa)


@pytest.mark.sim
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize(("src", "dst"), PAIRS, ids="-".join)
def test_a_copy_moves_its_bits_between_any_two_spaces(src: str, dst: str, bits: int) -> None:
    target = Target.parse("gfx1201")
    a = np.random.default_rng(0).integers(0, 256, 32 * bits // 8, dtype=np.uint8)
    for ssa in (True, False):
        b = np.zeros_like(a)
        text = kernel(bits, src, dst, target, 16, ssa)
        simulate(text, kernel="k", grid=(1,), block=(32,), args=[a, b], target=target)
        np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize(("align", "bits", "want"), [(16, 128, 16), (4, 128, 4), (1, 64, 1), (16, 96, 4), (16, 16, 2)])
def test_the_alignment_is_that_of_pointer_and_offset(align: int, bits: int, want: int) -> None:
    text = kernel(bits, "global", "register", Target.parse("gfx942"), align, True)
    (found,) = re.findall(r"load .*ptr addrspace\(1\) .*align (\d+)", text)
    assert int(found) == want


@pytest.mark.parametrize("elem", [t.F16, t.BF16, t.F32, t.F64], ids=str)
def test_a_multiply_add_may_be_contracted(elem: t.FloatType) -> None:
    em = Recorder()
    a, b, c = (value(elem.storage, name) for name in "abc")
    UniversalFma(elem).emit_atom_call_ssa(em, None, a, b, c)
    assert re.fullmatch(r"\s+%v0 = fmul contract \S+ %a, %b\n\s+%v1 = fadd contract \S+ %v0, %c", em.text())
