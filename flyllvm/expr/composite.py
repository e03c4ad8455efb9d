"""Structs, unions and arrays: types with a layout in bytes, like C's.

A field sits at a multiple of its alignment, a struct is as aligned as its most aligned field and padded to a multiple
of that.  A union has all its variants at offset 0 and no value form.  Sub-byte elements are packed in arrays only.
"""

from __future__ import annotations

import sys

from ..errors import TraceError
from .numeric import Numeric, NumericMeta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_RESERVED = ("replace", "peek", "poke")


def bytes_of(kind: Any) -> int:
    """Size of a type, in bytes.

    Raises:
        TraceError: It is no type with a size in bytes.
    """
    return _measured(kind)[0]


def align_of(kind: Any) -> int:
    """Alignment of a type, in bytes."""
    return _measured(kind)[1]


def _measured(kind: Any) -> tuple[int, int]:
    if isinstance(kind, NumericMeta):
        width = kind.width  # type: ignore[attr-defined]
        if width < 8:
            raise TraceError(f"{kind} is smaller than a byte", fix=f"use fx.Array[{kind}, n], which packs, or Int8")
        return width // 8, width // 8
    if isinstance(kind, (ArrayType, AlignType)) or (isinstance(kind, type) and issubclass(kind, Composite)):
        return kind.size_bytes, kind.align_bytes
    raise TraceError(
        f"{kind!r} has no size in bytes", fix="use a number type, fx.Array, fx.Align, or a class with @fx.struct"
    )


def _power_of_two(n: Any) -> bool:
    return type(n) is int and n > 0 and n & (n - 1) == 0


class ArrayType:
    """``fx.Array[T, n]``: n packed elements, the size rounded up to whole bytes.

    Attributes:
        dtype: Element type.
        count: Number of elements.
        size_bytes: Size in bytes.
        align_bytes: Alignment in bytes.
    """

    __slots__ = ("align_bytes", "count", "dtype", "size_bytes")

    def __init__(self, dtype: Any, count: Any, align: Any = None) -> None:
        if not isinstance(dtype, NumericMeta) or type(count) is not int or count < 1:
            raise TraceError(f"Array[{dtype}, {count}]", fix="write fx.Array[fx.Float16, 64], with a positive count")
        self.dtype: type[Numeric] = dtype  # type: ignore[assignment]
        self.count = count
        self.size_bytes = -(-self.dtype.width * count // 8)
        natural = max(1, self.dtype.width // 8)
        self.align_bytes = natural if align is None else align
        if not _power_of_two(self.align_bytes) or self.align_bytes < natural:
            raise TraceError(
                f"Array[{dtype}, {count}, {align}]", fix=f"the alignment is a power of two of at least {natural} bytes"
            )

    def __repr__(self) -> str:
        return f"Array[{self.dtype}, {self.count}, {self.align_bytes}]"


class Array:
    """``fx.Array[T, n]`` or ``fx.Array[T, n, align]`` (bytes)."""

    def __class_getitem__(cls, item: Any) -> ArrayType:
        parts = item if isinstance(item, tuple) else (item,)
        if len(parts) not in (2, 3):
            raise TraceError(f"Array[{item}]", fix="write fx.Array[dtype, count] or fx.Array[dtype, count, align]")
        return ArrayType(*parts)


class AlignType:
    """``fx.Align[T, n]``: a type at a multiple of n bytes; its size is unchanged."""

    __slots__ = ("align_bytes", "inner", "size_bytes")

    def __init__(self, inner: Any, align: Any) -> None:
        self.size_bytes, natural = _measured(inner)
        if not _power_of_two(align) or align < natural:
            raise TraceError(f"Align[{inner}, {align}]", fix=f"use a power of two of at least {natural} bytes")
        self.inner, self.align_bytes = inner, align

    def __repr__(self) -> str:
        return f"Align[{self.inner}, {self.align_bytes}]"


class Align:
    """``fx.Align[T, n]``."""

    def __class_getitem__(cls, item: Any) -> AlignType:
        if not isinstance(item, tuple) or len(item) != 2:
            raise TraceError(f"Align[{item}]", fix="write fx.Align[type, bytes]")
        return AlignType(*item)


class Composite:
    """Base of structs and unions.

    Class attributes:
        fields: Type by field name.
        offsets: Offset in bytes by field name.
        size_bytes, align_bytes: Layout of the whole.
    """

    fields: dict[str, Any] = {}
    offsets: dict[str, int] = {}
    size_bytes = 0
    align_bytes = 1


class Struct(Composite):
    """A value of a struct: its fields cannot be assigned; ``replace(field=value)`` gives a changed copy."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = list(self.fields)
        values = dict(zip(names, args, strict=False))
        values.update(kwargs)
        wrong = [n for n in values if n not in names]
        missing = [n for n in names if n not in values]
        if len(args) > len(names) or wrong or missing:
            raise TraceError(
                f"{type(self).__name__}: {'unknown ' + str(wrong) if wrong else 'missing ' + str(missing)}",
                fix=f"give each of {', '.join(names)} once",
            )
        for name in names:
            self.__dict__[name] = _as_field(f"{type(self).__name__}.{name}", self.fields[name], values[name])

    def __setattr__(self, name: str, value: Any) -> None:
        raise TraceError(
            f"{type(self).__name__}.{name} cannot be assigned", fix=f"make a copy: s = s.replace({name}=...)"
        )

    def replace(self, **changes: Any) -> Any:
        """The struct with some fields changed."""
        return type(self)(**{**{n: self.__dict__[n] for n in self.fields}, **changes})

    def __fly_flatten__(self) -> list[Any]:
        return [self.__dict__[name] for name in self.fields]

    def __fly_unflatten__(self, parts: list[Any]) -> Any:
        return type(self)(*parts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}={self.__dict__[n]!r}' for n in self.fields)})"


class Union(Composite):
    """All variants in one place; it exists in storage only."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TraceError(f"{type(self).__name__} has no value", fix="allocate it and poke one of its variants")


def _as_field(name: str, kind: Any, value: Any) -> Any:
    inner = kind.inner if isinstance(kind, AlignType) else kind
    if not isinstance(inner, NumericMeta):
        return value
    made: Any = inner(value)
    if not isinstance(value, Numeric) and made.signed is not None:
        _refuse_other_value(name, made, value)
    return made


def _refuse_other_value(name: str, made: Any, value: Any) -> None:
    """Refuses a Python number that an integer field cannot hold.

    Raises:
        TraceError: It has a fraction, or is out of the range of the type.
    """
    known = made.static_value()
    if known is not None and known != value:
        kind = type(made)
        raise TraceError(
            f"{name}={value!r} does not fit {kind}",
            fix=f"use a wider type, or {kind}({value!r}) to convert it on purpose",
        )


def _place(name: str, fields: dict[str, Any], union: bool) -> dict[str, Any]:
    offset, align, end, offsets = 0, 1, 0, {}
    for field, kind in fields.items():
        if field.startswith("_") or field in _RESERVED:
            raise TraceError(
                f"{name}: a field is called {field!r}",
                fix=f"choose a name without a leading underscore, and not one of {', '.join(_RESERVED)}",
            )
        try:
            size, need = _measured(kind)
        except TraceError as e:
            raise TraceError(f"{name}.{field}: {e.what}", fix=e.fix) from None
        offset = 0 if union else -(-end // need) * need
        offsets[field] = offset
        end = max(end, offset + size)
        align = max(align, need)
    total = -(-end // align) * align
    return {"fields": fields, "offsets": offsets, "size_bytes": total, "align_bytes": align}


def _annotations(cls: type, scope: dict[str, Any]) -> dict[str, Any]:
    """The fields of a class; annotations that are text are evaluated where the class was written."""
    module = sys.modules.get(cls.__module__)
    known = vars(module) if module is not None else {}
    out = {}
    # inspect.get_annotations would cost 15 ms of import.
    for name, kind in cls.__dict__.get("__annotations__", {}).items():  # noqa: RUF063
        try:
            out[name] = eval(kind, known, scope) if isinstance(kind, str) else kind
        except NameError as e:
            raise TraceError(f"{cls.__name__}.{name}: {e}", fix="import the type where the class is written") from None
    return out


def _refuse_more(cls: type, fields: dict[str, Any]) -> None:
    """Refuses what a class has besides annotated fields, since a struct would not have it."""
    if cls.__bases__ != (object,):
        raise TraceError(
            f"{cls.__name__} inherits from {cls.__bases__[0].__name__}", fix="write all fields in one class"
        )
    for name, value in vars(cls).items():
        if name in fields:
            raise TraceError(
                f"{cls.__name__}.{name} = {value!r}: fields have no defaults", fix="give every field a value"
            )
        if not name.startswith("__"):
            raise TraceError(
                f"{cls.__name__}.{name} is no annotated field",
                fix="annotate it, or write a function that takes the struct",
            )


class _Maker:
    """``@fx.struct`` on a class with annotated fields, or ``fx.struct["a": T, "b": U]``."""

    __slots__ = ("_base",)

    def __init__(self, base: type[Composite]) -> None:
        self._base = base

    def __call__(self, cls: type) -> Any:
        fields = _annotations(cls, sys._getframe(1).f_locals)
        _refuse_more(cls, fields)
        return self._make(cls.__name__, fields, cls.__doc__)

    def __getitem__(self, items: Any) -> Any:
        parts: Iterable[Any] = items if isinstance(items, tuple) else (items,)
        fields: dict[str, Any] = {}
        for part in parts:
            if not isinstance(part, slice) or not isinstance(part.start, str) or part.step is not None:
                raise TraceError(f"{part!r} is no field", fix='write fx.struct["name": type, ...]')
            if part.start in fields:
                raise TraceError(f"the field {part.start!r} is there twice", fix="give every field its own name")
            fields[part.start] = part.stop
        return self._make(self._base.__name__, fields, None)

    def _make(self, name: str, fields: dict[str, Any], doc: str | None) -> Any:
        placed = _place(name, fields, self._base is Union)
        return type(name, (self._base,), {**placed, "__doc__": doc or f"{self._base.__name__} of {', '.join(fields)}."})


struct = _Maker(Struct)
union = _Maker(Union)
