"""Whether tensors fit what a kernel was compiled for, and what is passed of them."""

from __future__ import annotations

from ..errors import LaunchError
from ..expr.specs import TensorSpec
from .binding_types import TYPE_OF_NAME, flat_leaves
from .unknown import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..expr.specs import Spec
    from .binding_tensor import TensorArg

_MAX_EXTENT = (1 << 31) - 1


def run_time_leaves(name: str, spec: Spec, value: TensorArg) -> list[Any]:
    """The run-time extents and strides of a tensor for a specification, in the kernel's order.

    Raises:
        LaunchError: The tensor does not fit.
    """
    if not isinstance(spec, TensorSpec):
        raise LaunchError(f"argument {name}: a tensor for {spec}", fix=f"pass a {spec}")
    if value.dtype is not spec.dtype:
        wanted = next((n for n, kind in TYPE_OF_NAME.items() if kind is spec.dtype), str(spec.dtype))
        raise LaunchError(f"argument {name}: {value.dtype} elements for {spec}", fix=f"pass an array of {wanted}")
    if value.address % spec.align:
        raise LaunchError(
            f"argument {name}: its address {value.address:#x} for {spec}", fix=f"align it to {spec.align} bytes"
        )
    shape, rules = flat_leaves(value.shape), spec.leaf_rules()
    actual = (*shape, *flat_leaves(value.stride))
    if len(actual) != len(rules):
        raise LaunchError(
            f"argument {name}: {len(shape)} dimensions for {spec}", fix=f"pass {len(rules) // 2} dimensions"
        )
    # No stride of a tensor without elements is used; NumPy makes them all 0.
    extents = (0,) * len(shape) if 0 in [n for n in shape if isinstance(n, int)] else shape
    return [n for (n, rule) in zip(actual, rules, strict=True) if not _fits(name, spec, n, rule, extents[rule[1]])]


def _fits(name: str, spec: TensorSpec, n: Any, rule: tuple[str, int, int | None, int], extent: Any) -> bool:
    """Whether a leaf is the static one of the rule; a run-time one is checked."""
    what, i, static, div = rule
    if isinstance(n, Unknown):
        return static is not None
    if static is not None:
        # The stride of an extent of one is never used.
        if n != static and not (what == "stride" and not isinstance(extent, Unknown) and extent <= 1):
            raise LaunchError(f"argument {name}: {what}[{i}] is {n} for {spec}", fix=f"it is compiled for {static}")
        return True
    if n % div:
        raise LaunchError(f"argument {name}: {what}[{i}] = {n} for {spec}", fix=f"pass a multiple of {div}")
    if n > _MAX_EXTENT:
        raise LaunchError(
            f"argument {name}: {what}[{i}] = {n}", fix="run-time extents and strides stay below 2**31; leave it static"
        )
    return False
