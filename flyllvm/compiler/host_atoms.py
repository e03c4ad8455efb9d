"""Atoms and tiled views that host code makes and a kernel takes as compile-time arguments.

They are values of the IR, and belong to the trace they were made in; so a kernel makes its own from their types.
"""

from __future__ import annotations

from ..errors import LaunchError
from ..expr.atoms import CopyAtom, MmaAtom
from ..expr.tiled import TiledCopy, TiledMma
from ..ir.builder import Builder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ATOMS = (CopyAtom, MmaAtom, TiledCopy, TiledMma)


def own(value: Any) -> Any:
    """A compile-time argument as the kernel being traced uses it.

    Raises:
        LaunchError: An atom whose state was set in host code.
    """
    if isinstance(value, _ATOMS):
        return _atom(value)
    cls = type(value)
    if cls in (tuple, list) and any(isinstance(v, (*_ATOMS, tuple, list, dict)) for v in value):
        return cls(own(v) for v in value)
    if cls is dict:
        return {k: own(v) for k, v in value.items()}
    return value


def _atom(value: Any) -> Any:
    b = Builder.current()
    if isinstance(value, TiledCopy):
        atom = _atom(value.atom)
        return TiledCopy(b.make_tiled_copy(atom.ir_value(), value.type.layout_tv, value.type.tile), atom)
    if isinstance(value, TiledMma):
        atom = _atom(value.mma_atom)
        made = b.make_tiled_mma(atom.ir_value(), value.type.atom_layout, value.type.permutation)
        return TiledMma(made, atom)
    op = getattr(value.ir_value(), "op", None)
    if op is not None and op.name not in ("fly.make_copy_atom", "fly.make_mma_atom"):
        raise LaunchError(
            f"{value} has state that was set in host code", fix="set the state inside the kernel: atom.set_value(...)"
        )
    if isinstance(value, CopyAtom):
        return CopyAtom(b.make_copy_atom(value.type))
    return MmaAtom(b.make_mma_atom(value.type))
