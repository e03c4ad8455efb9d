"""Binding arrays and numbers to the arguments a kernel was compiled for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import LaunchError
from ..expr.specs import PointerSpec, ScalarSpec, Spec, TensorSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

#: NumPy and ml_dtypes names of the element types.
ARRAY_DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2", "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2FNUZ": "float8_e5m2fnuz", "f8E8M0FNU": "float8_e8m0fnu",
}  # fmt: skip


def spec_of(value: Any) -> Spec:
    """The exact specification of an array: static shape and strides.

    Raises:
        LaunchError: The value is no array of a known element type.
    """
    name = str(getattr(value, "dtype", ""))
    for short, numpy_name in ARRAY_DTYPES.items():
        if name == numpy_name:
            shape = tuple(int(n) for n in value.shape)
            return TensorSpec(short, shape, _strides(value, value.dtype.itemsize), align=_align(value))
    raise LaunchError(
        f"no specification for {type(value).__name__} {value!r:.60}",
        fix="pass a specification, or an array of a known type",
    )


def _align(value: Any) -> int:
    address = int(value.__array_interface__["data"][0])
    return min(16, address & -address) if address else 16


def _strides(value: Any, itemsize: int) -> tuple[int, ...]:
    steps = tuple(int(s) for s in value.strides)
    if any(s % itemsize or s < 0 for s in steps):
        raise LaunchError(
            f"strides of {steps} bytes with elements of {itemsize}",
            fix="pass an array with non-negative strides of whole elements",
        )
    return tuple(s // itemsize for s in steps)


def bind(names: Sequence[str], specs: Sequence[Spec], values: Sequence[Any]) -> list[Any]:
    """The flat argument list: per tensor the array, then its run-time leaves.

    Raises:
        LaunchError: A value does not fit its specification.
    """
    if len(values) != len(specs):
        raise LaunchError(
            f"{len(values)} arguments for {', '.join(names) or 'none'}",
            fix=f"pass {len(specs)} arguments in this order",
        )
    flat: list[Any] = []
    for name, spec, value in zip(names, specs, values, strict=True):
        if isinstance(spec, TensorSpec):
            flat += _tensor(name, spec, value)
        elif isinstance(spec, PointerSpec):
            flat.append(value)
        else:
            flat.append(_scalar(name, spec, value))
    return flat


def launch_types(specs: Sequence[Spec]) -> tuple[str | None, ...]:
    """Element type of each entry of the flat argument list, as a launch wants it; ``None`` for pointers."""
    types: list[str | None] = []
    for spec in specs:
        types.append(str(spec) if isinstance(spec, ScalarSpec) else None)
        if isinstance(spec, TensorSpec):
            types += ["i32" for _, _, static, _ in spec.leaf_rules() if static is None]
    return tuple(types)


def _scalar(name: str, spec: ScalarSpec, value: Any) -> Any:
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise LaunchError(f"argument {name}: {value!r} is no number", fix=f"pass a {spec}")
    if spec.dtype.signed is None:
        return float(number)
    if not isinstance(number, int):
        raise LaunchError(f"argument {name}: {value!r} for {spec}", fix="pass an int")
    low = -(1 << (spec.dtype.width - 1)) if spec.dtype.signed else 0
    high = low + (1 << spec.dtype.width) - 1
    if not low <= number <= high:
        raise LaunchError(f"argument {name}: {number} does not fit {spec}", fix=f"pass a value from {low} to {high}")
    return number


def _tensor(name: str, spec: TensorSpec, value: Any) -> list[Any]:
    want = ARRAY_DTYPES.get(_short(spec), "")
    got = str(getattr(value, "dtype", type(value).__name__))
    if got != want:
        raise LaunchError(f"argument {name}: array of {got} for {spec}", fix=f"pass an array of {want}")
    actual = (*(int(n) for n in value.shape), *_strides(value, value.dtype.itemsize))
    rules = spec.leaf_rules()
    if len(actual) != len(rules):
        raise LaunchError(
            f"argument {name}: {len(value.shape)} dimensions for {spec}", fix=f"pass {len(rules) // 2} dimensions"
        )
    flat = [value]
    for (what, i, static, div), n in zip(rules, actual, strict=True):
        extent = int(value.shape[i])
        if static is not None:
            # The stride of an extent of one is never used.
            if n != static and not (what == "stride" and extent <= 1):
                raise LaunchError(f"argument {name}: {what}[{i}] is {n} for {spec}", fix=f"it is compiled for {static}")
            continue
        if n % div:
            raise LaunchError(f"argument {name}: {what}[{i}] = {n} for {spec}", fix=f"pass a multiple of {div}")
        if n >= 1 << 31:
            raise LaunchError(f"argument {name}: {what}[{i}] = {n}", fix="extents and strides stay below 2**31")
        flat.append(n)
    return flat


def _short(spec: TensorSpec) -> str:
    return spec.dtype.ir.text if spec.dtype.signed is not False else f"u{spec.dtype.width}"
