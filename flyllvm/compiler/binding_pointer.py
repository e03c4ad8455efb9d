"""Raw pointers as arguments, and arguments without data."""

from __future__ import annotations

from ..errors import LaunchError
from ..expr.specs import PointerSpec, TensorSpec
from .binding_tensor import TensorArg
from .binding_types import ALIGN_OF, NOWHERE
from .unknown import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..expr.numeric import Numeric


class PointerArg:
    """A raw pointer as a kernel argument.

    Attributes:
        dtype: Element type.
        address: The address.
        span_bytes: Bytes that may be read and written from there, or ``None`` when not known.
        where: ``host``, ``device``, or ``nowhere`` when only the author knows.
    """

    __slots__ = ("_align", "_spec", "address", "dtype", "name", "offset_bytes", "owner", "slot", "span_bytes", "where",
                 "writable")  # fmt: skip

    def __init__(
        self,
        dtype: type[Numeric],
        address: int,
        *,
        align: int | None = None,
        span_bytes: int | None = None,
        where: str = NOWHERE,
        owner: Any = None,
    ) -> None:
        self.dtype, self.address, self.span_bytes, self.where, self.owner = dtype, address, span_bytes, where, owner
        self.name, self.writable, self.offset_bytes = "pointer", True, 0
        self.slot: int | None = None
        self._align = ALIGN_OF[address & 15] if align is None else align
        self._spec: PointerSpec | None = None
        if address % self._align:
            raise LaunchError(
                f"address {address:#x} is not aligned to {self._align} bytes", fix="pass an aligned address, or less"
            )

    @property
    def element_type(self) -> type[Numeric]:
        """Element type."""
        return self.dtype

    @property
    def alignment(self) -> int:
        """Alignment that kernels rely on, in bytes."""
        return self._align

    def spec(self) -> PointerSpec:
        """What a kernel is compiled for to take this pointer."""
        return PointerSpec(self.dtype, self._align) if self._spec is None else self._spec

    def for_slot(self, slot: int | None, name: str) -> PointerArg:
        """A copy that stands for a parameter."""
        out = PointerArg(
            self.dtype,
            self.address,
            align=self._align,
            span_bytes=self.span_bytes,
            where=self.where,
            owner=self.owner,
        )
        out.slot, out.name, out._spec, out.writable = slot, name, self._spec, self.writable
        return out

    def fixed(self, spec: PointerSpec, name: str) -> PointerArg:
        """This pointer for a kernel compiled for ``spec``, checked."""
        if self.dtype is not spec.dtype:
            raise LaunchError(f"argument {name}: pointer to {self.dtype} for {spec}", fix=f"pass one to {spec.dtype}")
        if self.address % spec.align:
            raise LaunchError(
                f"argument {name}: address {self.address:#x} for {spec}", fix=f"align it to {spec.align} bytes"
            )
        out = self.for_slot(self.slot, name)
        out._spec = spec
        return out

    def key(self) -> Any:
        """All that code compiled for it depends on."""
        return (self.where, self.dtype, self._align, self.span_bytes)

    def __repr__(self) -> str:
        return f"{self.name}: pointer to {self.dtype} at {self.address:#x}"


def from_spec(spec: TensorSpec | PointerSpec, name: str) -> TensorArg | PointerArg:
    """An argument without data, for compiling."""
    if isinstance(spec, PointerSpec):
        pointer = PointerArg(spec.dtype, 0, align=spec.align)
        pointer._spec = spec
        return pointer
    out = TensorArg(
        spec.dtype,
        _unknown(spec.shape, f"extent of {name}"),
        _unknown(spec.stride, f"stride of {name}"),
        where=NOWHERE,
    )
    out._spec, out.name = spec, name
    return out


def _unknown(tree: Any, name: str) -> Any:
    if isinstance(tree, tuple):
        return tuple(_unknown(x, f"{name}[{i}]") for i, x in enumerate(tree))
    return tree if isinstance(tree, int) else Unknown(name)
