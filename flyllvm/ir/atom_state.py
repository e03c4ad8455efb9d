"""Access to the state of an atom type."""

from __future__ import annotations

from ..errors import StateError
from . import types as t
from .protocols import StatefulOp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..state import StateStruct


def payload_of(type_: t.Type) -> object:
    """The copy or mma operation behind an atom or tiled type.

    Raises:
        StateError: The type is no atom.
    """
    if isinstance(type_, (t.TiledCopyType, t.TiledMmaType)):
        type_ = type_.atom
    if not isinstance(type_, (t.CopyAtomType, t.MmaAtomType)):
        raise StateError(f"{type_} is no atom and has no state", fix="set state on a copy or mma atom")
    return type_.op


def state_of(type_: t.Type) -> StateStruct:
    """The state struct of an atom type.

    Raises:
        StateError: The atom has no state.
    """
    op = payload_of(type_)
    if not isinstance(op, StatefulOp):
        raise StateError(f"{op} has no state fields", fix="use an atom with state, or leave the keyword out")
    return op.state
