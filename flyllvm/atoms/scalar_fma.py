"""What multiply-adds of one thread have in common."""

from __future__ import annotations

from ..errors import AtomError
from ..layout import Layout
from .base import ONE_THREAD
from .mma_op import StatelessMma
from .spelling import parse_mma

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import ClassVar, TypeVar

    from ..ir import types as t

    Fma = TypeVar("Fma", bound="ScalarFma")


class ScalarFma(StatelessMma):
    """``d = a * b + c`` by one thread, all of one type.

    Args:
        elem: Element type, one of ``elements``.

    Attributes:
        elements: The element types by name.
        word: What errors call it.

    Raises:
        AtomError: Another type.
    """

    __slots__ = ()

    elements: ClassVar[Mapping[str, t.ScalarType]]
    word: ClassVar[str]

    def __init__(self, elem: t.ScalarType | str) -> None:
        found = self.elements.get(str(elem))
        if found is None:
            raise AtomError(f"{self.word} on {elem}", fix=f"use one of: {', '.join(self.elements)}")
        self.params = f"1x1x1, ({found}, {found}) -> {found}"
        self.shape_mnk = (1, 1, 1)
        self.blocks = 1
        self.types = (found, found, found, found)
        self.layout_a = self.layout_b = self.layout_c = Layout((1, 1), (1, 1))

    @property
    def thr_layout(self) -> Layout:
        """One thread."""
        return ONE_THREAD


def parse_fma(kind: type[Fma], params: str) -> Fma:
    """The atom of ``1x1x1, (f32, f32) -> f32``."""
    shape, elements, _ = parse_mma(kind.mnemonic, params)
    if shape != (1, 1, 1) or len(set(elements)) != 1:
        raise AtomError(
            f"!{kind.mnemonic}<{params}>: one thread computes 1x1x1 in one type",
            fix=f"write <1x1x1, ({elements[2]}, {elements[2]}) -> {elements[2]}>",
        )
    return kind(elements[0])
