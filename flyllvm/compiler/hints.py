"""Compile hints: what an author may ask of code generation, checked by name and value.

``@flyc.kernel(...)``, ``flyc.compile[{...}]``, the keywords of ``flyc.compile``, ``@flyc.jit(...)`` and ``launch(...)``
take the same names; of two that meet, the one named later in this list counts.
"""

from __future__ import annotations

from ..errors import TraceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

#: Hints of a kernel, beside the options of code generation.
KERNEL_HINTS = ("waves_per_eu", "maxnreg", "fastmath", "known_block_size", "noalias", "cluster")
#: FlyDSL's names of the two float hints, with what they mean here.
_ALIASES = {"fast_fp_math": "fastmath", "unsafe_fp_math": "fastmath", "denormal_mode": "denormals"}
_WAVES = (1, 8)
_REGISTERS = (8, 512)
_CLUSTER = 16


def option_names() -> tuple[str, ...]:
    """Names of the code generation options."""
    from ..codegen.options import Options

    return Options.__slots__


def check_hints(hints: Mapping[str, Any], where: object | None = None) -> dict[str, Any]:
    """Hints by their own names; those that are ``None`` left out.

    Raises:
        TraceError: An unknown hint, or a value outside its legal set.
    """
    out: dict[str, Any] = {}
    for name, value in hints.items():
        key = _ALIASES.get(name, name)
        if value is None:
            continue
        if key in _CHECKS:
            out[key] = _CHECKS[key](value, where)
        elif key in KERNEL_HINTS or key in option_names():
            out[key] = value
        else:
            legal = sorted({*KERNEL_HINTS, *option_names()})
            raise TraceError(f"unknown hint {name!r}", where, f"hints are: {', '.join(legal)}")
    if out.get("cluster", (1, 1, 1)) != (1, 1, 1):
        out.setdefault("cov", 600)  # older code objects do not say what clusters a kernel is made for
    return out


def split_hints(hints: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Hints of the kernel, and options of code generation, of checked hints."""
    names = option_names()
    settings = {k: v for k, v in hints.items() if k in names}
    return {k: v for k, v in hints.items() if k not in settings}, settings


def _number(name: str, value: Any, low: int, high: int, where: object | None) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise TraceError(f"{name}={value!r}", where, f"use an int from {low} to {high}")
    return value


def _waves(value: Any, where: object | None) -> Any:
    """Waves per SIMD: a least number, or (least, most)."""
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise TraceError(f"waves_per_eu={value!r}", where, "use an int from 1 to 8, or (least, most)")
        low, high = (_number("waves_per_eu", v, *_WAVES, where) for v in value)
        if low > high:
            raise TraceError(f"waves_per_eu={value!r}", where, "give the smaller number first")
        return (low, high)
    return _number("waves_per_eu", value, *_WAVES, where)


def _registers(value: Any, where: object | None) -> int:
    return _number("maxnreg", value, *_REGISTERS, where)


def _fastmath(value: Any, where: object | None) -> tuple[str, ...]:
    """Flags by name; ``True`` is all of them, ``False`` none."""
    from ..ir.ops_arith import FASTMATH

    if isinstance(value, bool):
        return tuple(f for f in FASTMATH if f != "fast") if value else ()
    flags = (value,) if isinstance(value, str) else tuple(value)
    for flag in flags:
        if flag not in FASTMATH:
            raise TraceError(f"fastmath={value!r}", where, f"use True, or some of: {', '.join(FASTMATH)}")
    return flags


def _flag(value: Any, where: object | None) -> bool:
    if not isinstance(value, bool):
        raise TraceError(f"noalias={value!r}", where, "use True or False")
    return value


def _cluster(value: Any, where: object | None) -> tuple[int, int, int]:
    """Workgroups of a cluster in x, y and z; a chip names them with 16 bits."""
    sizes = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    x, y, z = full = (*sizes, 1, 1, 1)[:3]
    if not 1 <= len(sizes) <= 3 or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in full):
        raise TraceError(f"cluster={value!r}", where, "use one to three positive ints")
    if x * y * z > _CLUSTER:
        raise TraceError(
            f"cluster={value!r}: {x * y * z} workgroups", where, f"a cluster has at most {_CLUSTER} workgroups"
        )
    return x, y, z


_CHECKS = {"waves_per_eu": _waves, "maxnreg": _registers, "fastmath": _fastmath, "noalias": _flag, "cluster": _cluster}
