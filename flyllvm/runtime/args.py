"""The fast way to pack kernel arguments: one ``struct`` call for a kernel that is launched often.

Whatever the fast way cannot vouch for goes to `flyllvm.codeobject.pack_kernarg`, which packs it or says what is wrong.
"""

from __future__ import annotations

import struct

from ..codeobject import KernelInfo, pack_kernarg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

# Type -> struct format of the same size and range.
_FORMATS = {
    "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
    "f16": "e", "f32": "f", "f64": "d",
}  # fmt: skip
_POINTER, _INT, _FLOAT = 0, 1, 2


class ArgumentPacker:
    """Packs the explicit arguments of one kernel, for one list of types.

    Attributes:
        kernel: The kernel.
        types: Element type per argument, or ``None``.
    """

    __slots__ = ("_kinds", "_pack_into", "kernel", "types")

    def __init__(self, kernel: KernelInfo, types: tuple[str | None, ...] | None = None) -> None:
        self.kernel = kernel
        self.types = types
        self._kinds: tuple[int, ...] | None = None
        plan = _plan(kernel, types)
        if plan is not None:
            self._kinds, form = plan
            self._pack_into = struct.Struct(form).pack_into

    def pack_into(self, buffer: Any, values: Sequence[object]) -> None:
        """Writes the argument bytes to the start of a buffer.

        Raises:
            LaunchError: Wrong count, kind, size or range.
        """
        kinds = self._kinds
        if kinds is not None and len(values) == len(kinds):
            plain: list[Any] = []
            for kind, value in zip(kinds, values):
                if kind == _POINTER and type(value) is not int:
                    value = _address(value)
                    if type(value) is not int:
                        break
                elif kind == _INT and type(value) is not int:
                    break
                elif kind == _FLOAT and type(value) is not float and type(value) is not int:
                    break
                plain.append(value)
            else:
                try:
                    self._pack_into(buffer, 0, *plain)
                    return
                except (struct.error, OverflowError):
                    pass  # out of range: the slow way says which one
        packed = pack_kernarg(self.kernel, values, self.types)
        buffer[: len(packed)] = packed


def _address(value: object) -> object:
    """Address of the usual device arrays; the value itself for all else."""
    if value is None:
        return 0
    if getattr(value, "is_cuda", True):
        pointer = getattr(value, "data_ptr", None)
        if pointer is not None:
            return pointer()
    return value


def _plan(kernel: KernelInfo, types: tuple[str | None, ...] | None) -> tuple[tuple[int, ...], str] | None:
    """Kinds and ``struct`` format of the arguments, or ``None`` where the format cannot say them."""
    kinds, form, end = [], "<", 0
    if types is None:
        types = (None,) * len(kernel.args)
    if len(types) != len(kernel.args):
        return None
    for arg, kind in zip(kernel.args, types):
        code = ("Q" if arg.size == 8 else "I") if arg.is_pointer else _FORMATS.get(kind or "")
        if code is None or struct.calcsize("<" + code) != arg.size:
            return None
        form += f"{arg.offset - end}x{code}"
        end = arg.offset + arg.size
        kinds.append(_POINTER if arg.is_pointer else _FLOAT if code in "efd" else _INT)
    return tuple(kinds), form
