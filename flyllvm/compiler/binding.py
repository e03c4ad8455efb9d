"""The flat argument list of a kernel: arrays and numbers bound to what it was compiled for."""

from __future__ import annotations

from ..errors import LaunchError
from ..expr.specs import ScalarSpec, Spec, StructSpec, TensorSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

#: NumPy and ml_dtypes names of the element types.
ARRAY_DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2", "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2FNUZ": "float8_e5m2fnuz", "f8E8M0FNU": "float8_e8m0fnu",
}  # fmt: skip


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
    from .binding_fit import run_time_leaves
    from .binding_tensor import TensorArg
    from .binding_values import Fields, Number, for_spec

    flat: list[Any] = []
    for name, spec, value in zip(names, specs, values, strict=True):
        arg = for_spec(name, value, spec)
        if isinstance(arg, Number):
            flat.append(arg.value)
            continue
        if isinstance(arg, Fields):
            flat += arg.values
            continue
        flat.append(_memory(value, arg))
        if isinstance(arg, TensorArg):
            flat += run_time_leaves(name, spec, arg)
    return flat


def _memory(value: Any, arg: Any) -> Any:
    """What stands for the memory of an argument: the array itself, or its bytes where it has gaps or is no NumPy's."""
    flags = getattr(value, "flags", None)
    dense = getattr(flags, "c_contiguous", False) or getattr(flags, "f_contiguous", False)
    if arg.where == "device" or dense:
        return value
    if arg.address == 0 or arg.span_bytes is None:
        return None if arg.address == 0 else arg.address
    from ..runtime.simulated import host_bytes

    return host_bytes(arg.address, arg.span_bytes, arg.writable)


def launch_types(specs: Sequence[Spec]) -> tuple[str | None, ...]:
    """Element type of each entry of the flat argument list, as a launch wants it; ``None`` for pointers."""
    types: list[str | None] = []
    for spec in specs:
        if isinstance(spec, StructSpec):
            types += [str(leaf) for _, leaf in spec.leaves()]
            continue
        types.append(str(spec) if isinstance(spec, ScalarSpec) else None)
        if isinstance(spec, TensorSpec):
            types += ["i32" for _, _, static, _ in spec.leaf_rules() if static is None]
    return tuple(types)
