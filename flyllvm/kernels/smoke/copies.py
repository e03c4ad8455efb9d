"""Smoke tests of the copy atoms: every width between global memory, LDS and registers."""

from __future__ import annotations

import numpy as np

from ...atoms import all_rows
from ...atoms.copy_op import CopyAtomOp
from ...atoms.rocdl.cdna3_buffer_copy import BufferCopy
from ...atoms.rocdl.cdna3_buffer_copy_lds import BufferCopyLds
from ...ir import types as t
from ...layout import Layout
from .case import Case, kernel_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...ir.builder import Builder
    from ...ir.core import Value
    from ...target import Target

BLOCK = 256
_ELEMENTS = {8: t.I8, 16: t.F16}


def copy_atoms(target: Target) -> list[CopyAtomOp]:
    """The copy atoms that a target has."""
    return [op for op in all_rows() if isinstance(op, CopyAtomOp) and target.processor in op.targets]


def copy_case(target: Target, op: CopyAtomOp) -> Case:
    """Every work item moves its own piece through the atom; the rest of the destination stays."""
    elem = _ELEMENTS.get(op.bit_size, t.I32)
    count = op.bit_size // elem.bits
    piece_bytes = op.bit_size // 8
    pointer = t.PtrType(elem, "global", piece_bytes & -piece_bytes)
    piece = Layout(count, 1)

    def body(b: Builder, src: Value, dst: Value) -> None:
        offset = b.index_mul(b.thread_id(), count)
        plain = b.make_copy_atom(t.CopyAtomType(_plain(op.bit_size), elem.bits))
        atom = b.make_copy_atom(t.CopyAtomType(op, elem.bits))
        size = b.constant(BLOCK * piece_bytes, t.I64)
        out = b.make_view(b.add_offset(dst, offset), piece)
        if isinstance(op, BufferCopyLds):
            lds = b.shared(elem, BLOCK * piece_bytes)
            here = b.make_view(b.add_offset(lds, offset), piece)
            b.copy_atom_call(atom, b.make_view(b.add_offset(b.make_buffer(src, size), offset), piece), here)
            b.barrier()
            b.copy_atom_call(plain, here, out)
            return
        if isinstance(op, BufferCopy):
            src, dst = b.make_buffer(src, size), b.make_buffer(dst, size)
            out = b.make_view(b.add_offset(dst, offset), piece)
        held = b.alloca(elem, piece)
        b.copy_atom_call(atom, b.make_view(b.add_offset(src, offset), piece), held)
        b.copy_atom_call(atom, held, out)

    text = kernel_text(target, (BLOCK, 1, 1), body, {"src": pointer, "dst": pointer})
    rng = np.random.default_rng(op.bit_size)
    source = rng.integers(0, 256, BLOCK * piece_bytes, np.uint8)
    args = [source, np.full(source.size + 16, 0xEE, np.uint8)]
    return Case(op.name, "copy", target, text, grid=(1, 1, 1), block=(BLOCK, 1, 1), args=args, outputs=[1])


def _plain(bits: int) -> CopyAtomOp:
    from ...atoms.universal import UniversalCopy

    return UniversalCopy(bits)
