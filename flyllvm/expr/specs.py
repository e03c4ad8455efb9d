"""Argument specifications: what a kernel is compiled for, without data.

A tensor is a pointer argument followed by one integer argument per run-time leaf of its shape and
stride, in that order.  The text form is that of the command line:
``f16[?,128]:(?,1){div=8,align=16}``, ``i32``, ``ptr<f16>{align=16}``.
"""

from __future__ import annotations

from itertools import count

from .. import layout as L
from ..errors import ParseError, TraceError
from ..ir import types as t
from .composite import Struct
from .numeric import BY_IR, TYPES, Int32, Numeric
from .pointer import Pointer
from .tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..ir.core import Kernel

#: Short type names of the text form, with those of the IR.
NAMES: dict[str, type[Numeric]] = {**BY_IR, "bool": TYPES["Boolean"]}
NAMES.update({f"u{b}": TYPES[f"Uint{b}"] for b in (8, 16, 32, 64)})
NAMES.update({f"s{b}": TYPES[f"Int{b}"] for b in (8, 16, 32, 64)})

#: Extents and strides passed at run time are non-negative 32-bit numbers.
EXTENT_RANGE = (0, (1 << 31) - 1)
#: Largest static extent or stride, in elements: addresses are computed in 64 bits, with a sign.
LARGEST = (1 << 63) - 1


class TensorSpec:
    """A tensor argument in global memory.

    Args:
        dtype: Element type, as a class of the language or a name.
        shape: Extents; ``None`` is a run-time extent, ``fx.Dyn(divisibility=8)`` one that is a multiple of 8.
        stride: Strides in elements; ``None`` is a run-time stride.  By default row-major, run-time where the
            extents are.
        align: Alignment of the first element, in bytes.
        divisibility: What every run-time leaf without its own mark is a multiple of.
    """

    __slots__ = ("align", "divisibility", "dtype", "shape", "stride")

    def __init__(
        self,
        dtype: type[Numeric] | str,
        shape: Any,
        stride: Any = None,
        *,
        align: int | None = None,
        divisibility: int = 1,
    ) -> None:
        self.dtype = _dtype(dtype)
        self.shape = _leaves(shape, "shape")
        self.stride = _row_major(self.shape) if stride is None else _leaves(stride, "stride")
        if not L.is_profile_congruent(_zeros(self.shape), _zeros(self.stride)):
            raise TraceError(
                f"TensorSpec: shape {shape} and stride {stride} differ in nesting", fix="give one stride per extent"
            )
        _fits(self.shape, "extent")
        _fits(self.stride, "stride")
        self.align = t.natural_align(self.dtype.ir) if align is None else align
        if self.align < 1 or self.align & (self.align - 1):
            raise TraceError(f"TensorSpec: align={align} bytes", fix="use a power of two")
        if divisibility < 1:
            raise TraceError(f"TensorSpec: divisibility={divisibility}", fix="use a positive number")
        self.divisibility = divisibility

    def declare(self, kernel: Kernel, name: str, attrs: dict[str, Any]) -> Tensor:
        """Adds the arguments to a kernel and returns the tensor they make."""
        ptr = kernel.add_arg(t.PtrType(self.dtype.ir, "global", self.align), name, align=self.align, **attrs)
        counter = count()

        def leaf(x: Any) -> Any:
            if isinstance(x, tuple):
                return tuple(leaf(v) for v in x)
            if isinstance(x, int):
                return x
            v = kernel.add_arg(t.I32, f"{name}_d{next(counter)}", divisibility=self._multiple(x), range=EXTENT_RANGE)
            v.range = EXTENT_RANGE
            return v

        layout = L.Layout(leaf(self.shape), leaf(self.stride))
        return Tensor(ptr, layout, self.dtype)

    def _multiple(self, leaf: Any) -> int:
        return self.divisibility if leaf is None else int(leaf.divisibility)

    def leaf_rules(self) -> list[tuple[str, int, int | None, int]]:
        """(``shape`` or ``stride``, position, static value or ``None``, divisibility) of every leaf."""
        out = []
        for what, tree in (("shape", self.shape), ("stride", self.stride)):
            for i, x in enumerate(L.flatten(_marked(tree))):
                static = x if isinstance(x, int) else None
                out.append((what, i, static, 1 if static is not None else self._multiple(_unmarked(x))))
        return out

    def __str__(self) -> str:
        text = f"{_name(self.dtype)}[{_show(self.shape)[1:-1]}]:{_show(self.stride)}"
        marks = [f"div={self.divisibility}"] if self.divisibility != 1 else []
        if self.align != t.natural_align(self.dtype.ir):
            marks.append(f"align={self.align}")
        return text + ("{" + ",".join(marks) + "}" if marks else "")

    __repr__ = __str__


class PointerSpec:
    """A raw global pointer argument."""

    __slots__ = ("align", "dtype")

    def __init__(self, dtype: type[Numeric] | str, align: int | None = None) -> None:
        self.dtype = _dtype(dtype)
        self.align = t.natural_align(self.dtype.ir) if align is None else align

    def declare(self, kernel: Kernel, name: str, attrs: dict[str, Any]) -> Pointer:
        """Adds the argument to a kernel."""
        value = kernel.add_arg(t.PtrType(self.dtype.ir, "global", self.align), name, align=self.align, **attrs)
        return Pointer(value, self.dtype)

    def __str__(self) -> str:
        return f"ptr<{_name(self.dtype)}>{{align={self.align}}}"

    __repr__ = __str__


class ScalarSpec:
    """A scalar argument."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: type[Numeric] | str) -> None:
        self.dtype = _dtype(dtype)
        if self.dtype.width % 8:
            raise TraceError(f"a {self.dtype} kernel argument", fix="pass an Int32 or Uint8 instead")

    def declare(self, kernel: Kernel, name: str, attrs: dict[str, Any]) -> Numeric:
        """Adds the argument to a kernel."""
        del attrs
        return self.dtype.wrap(kernel.add_arg(self.dtype.ir, name))

    def __str__(self) -> str:
        return _name(self.dtype)

    __repr__ = __str__


class StructSpec:
    """A struct argument: each number in it is an argument of its own, in the order of the fields.

    Args:
        kind: A class made with ``@fx.struct`` whose fields are numbers or such structs.
    """

    __slots__ = ("fields", "kind")

    def __init__(self, kind: type[Struct]) -> None:
        self.kind = kind
        self.fields: dict[str, ScalarSpec | StructSpec] = {}
        for name, field in kind.fields.items():
            inner = getattr(field, "inner", field)
            if isinstance(inner, type) and issubclass(inner, Struct):
                self.fields[name] = StructSpec(inner)
            elif isinstance(inner, type) and issubclass(inner, Numeric):
                self.fields[name] = ScalarSpec(inner)
            else:
                raise TraceError(
                    f"{kind.__name__}.{name} is a {field}: no kernel argument",
                    fix="pass arrays as tensors",
                )

    def declare(self, kernel: Kernel, name: str, attrs: dict[str, Any]) -> Struct:
        """Adds the arguments to a kernel."""
        return self.kind(**{f: spec.declare(kernel, f"{name}_{f}", attrs) for f, spec in self.fields.items()})

    def leaves(self) -> list[tuple[str, ScalarSpec]]:
        """Path and type of every number."""
        out: list[tuple[str, ScalarSpec]] = []
        for name, spec in self.fields.items():
            inner = [("", spec)] if isinstance(spec, ScalarSpec) else spec.leaves()
            out += [(f"{name}.{path}" if path else name, leaf) for path, leaf in inner]
        return out

    def __str__(self) -> str:
        return f"{self.kind.__name__}{{{', '.join(f'{n}: {s}' for n, s in self.fields.items())}}}"

    __repr__ = __str__


Spec = TensorSpec | PointerSpec | ScalarSpec | StructSpec


def _name(dtype: type[Numeric]) -> str:
    return dtype.ir.text if dtype.signed is not False or dtype.width == 1 else f"u{dtype.width}"


def _dtype(x: Any) -> type[Numeric]:
    if isinstance(x, str):
        found = NAMES.get(x) or TYPES.get(x)
        if found is None:
            raise ParseError(f"unknown element type {x!r}", fix=f"use one of: {', '.join(NAMES)}")
        return found
    if isinstance(x, type) and issubclass(x, Numeric):
        return x
    raise TraceError(f"{x!r} is no element type", fix="use e.g. fx.Float16 or 'f16'")


class _Free:
    """Stands for an unmarked run-time leaf in a tree, where ``None`` would read as ``*``."""

    __slots__ = ()
    divisibility = 1
    width = 32

    def static_value(self) -> None:
        return None

    def same_as(self, other: object) -> bool:
        return self is other


_FREE = _Free()


def _marked(x: Any) -> Any:
    return tuple(map(_marked, x)) if isinstance(x, tuple) else _FREE if x is None else x


def _unmarked(x: Any) -> Any:
    return None if x is _FREE else x


def _leaves(x: Any, what: str) -> Any:
    if isinstance(x, (tuple, list)):
        return tuple(_leaves(v, what) for v in x)
    if x is None or x == "?":
        return None
    if isinstance(x, L.Dyn):
        if x.width != 32:
            raise TraceError(f"TensorSpec: {what} leaf {x}", fix="run-time leaves are 32-bit")
        return x
    if isinstance(x, bool) or not isinstance(x, int) or x < 0:
        raise TraceError(f"TensorSpec: {what} leaf {x!r}", fix="use a non-negative int, or None for a run-time number")
    return x


def _fits(x: Any, what: str) -> None:
    if isinstance(x, tuple):
        for part in x:
            _fits(part, what)
    elif isinstance(x, int) and x > LARGEST:
        raise TraceError(
            f"TensorSpec: {what} {_short(x)} is past the limit of 2**63 - 1 elements",
            fix="use a smaller number; one row-major stride is the product of the extents behind it",
        )


def _short(x: int) -> str:
    return str(x) if x < 10**40 else f"of {x.bit_length()} bits"


def _row_major(shape: Any) -> Any:
    if not isinstance(shape, tuple):
        return 1
    out: list[int | None] = []
    step: int | None = 1
    for extent in reversed(shape):
        if isinstance(extent, tuple):
            raise TraceError("TensorSpec: a nested shape has no default stride", fix="give the strides")
        out.append(step)
        step = step * extent if isinstance(step, int) and isinstance(extent, int) else None
    return tuple(reversed(out))


def _zeros(x: Any) -> Any:
    return tuple(map(_zeros, x)) if isinstance(x, tuple) else 0


def _show(x: Any) -> str:
    if isinstance(x, tuple):
        return "(" + ",".join(map(_show, x)) + ")"
    return "?" if x is None else str(x)


def parse_spec(text: str) -> Spec:
    """Reads the command line's argument text.

    Raises:
        ParseError: The text is malformed.
    """
    body, marks = text.strip(), {"div": 1, "align": 0}
    if body.endswith("}") and "{" in body:
        # A mark of a leaf is inside brackets or parentheses, so a brace at the end belongs to the argument.
        body, _, tail = body[:-1].rpartition("{")
        for part in filter(None, tail.split(",")):
            key, _, number = part.partition("=")
            if key.strip() not in marks or not number.strip().isdigit():
                raise ParseError(f"argument {text!r}: mark {part!r}", fix="marks are div=N and align=N (bytes)")
            marks[key.strip()] = _number(number.strip(), text)
            if marks[key.strip()] == 0:
                raise ParseError(f"argument {text!r}: mark {part!r}", fix="give a number from 1 on")
    align = marks["align"] or None
    if body.startswith("ptr<") and body.endswith(">"):
        return PointerSpec(body[4:-1].strip(), align)
    if "[" not in body:
        return ScalarSpec(body)
    name, _, rest = body.partition("[")
    shape, closed, stride = rest.partition("]")
    if not closed or (stride and not stride.startswith(":")):
        raise ParseError(
            f"argument {text!r}", fix="write e.g. f16[?,128]:(?,1){div=8,align=16}, f16[?,?{div=8}], i32 or ptr<f32>"
        )
    extents = _tuple(f"({shape})", text)
    strides = _tuple(stride[1:], text) if stride else None
    if strides is not None and not isinstance(strides, tuple):
        strides = (strides,)
    return TensorSpec(name.strip(), extents, strides, align=align, divisibility=marks["div"])


def _number(digits: str, whole: str) -> int:
    if len(digits) > 100:  # Python reads numbers of some thousand digits only
        raise ParseError(f"argument {whole!r}: a number of {len(digits)} digits", fix="the limit is 2**63 - 1")
    return int(digits)


def _tuple(text: str, whole: str) -> Any:
    pos = 0

    def item() -> Any:
        nonlocal pos
        if pos < len(text) and text[pos] == "(":
            pos += 1
            parts: list[Any] = []
            while pos < len(text) and text[pos] != ")":
                parts.append(item())
                if pos < len(text) and text[pos] == ",":
                    pos += 1
            pos += 1
            return tuple(parts)
        start = pos
        while pos < len(text) and text[pos] not in ",()":
            pos += 1
        word = text[start:pos].strip()
        if word == "?":
            return None
        if word.startswith("?{div=") and word.endswith("}") and word[6:-1].isdigit():
            return L.Dyn(divisibility=_number(word[6:-1], whole))
        if not word.isdigit():
            raise ParseError(f"argument {whole!r}: {word!r} is no extent", fix="use numbers and '?'")
        return _number(word, whole)

    made = item()
    if pos != len(text):
        raise ParseError(f"argument {whole!r}: {text[pos:]!r} is left over", fix="balance the parentheses")
    return made


__all__ = ["Int32", "PointerSpec", "ScalarSpec", "Spec", "StructSpec", "TensorSpec", "parse_spec"]
