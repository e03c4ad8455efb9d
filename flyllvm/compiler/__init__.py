"""Compiling kernels: ``import flyllvm.compiler as flyc``."""

from __future__ import annotations

from ..expr.specs import PointerSpec, ScalarSpec, TensorSpec, parse_spec
from .artifact import Artifact
from .binding_arrays import from_c_void_p, from_dlpack, register_argument
from .binding_pointer import PointerArg
from .binding_tensor import TensorArg
from .compile import compile
from .jit import jit
from .kernel import KernelFunction, kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .compiled_jit import CompiledJit as CompiledJit
    from .jit_function import JitFunction as JitFunction
    from .kernel_cache import clear_caches as clear_caches

#: FlyDSL's name for a torch tensor as an argument; it takes any array.
from_torch_tensor = from_dlpack

# Name -> module, loaded at first use: only launches need them.
_HOMES = {"CompiledJit": "compiled_jit", "JitFunction": "jit_function", "clear_caches": "kernel_cache"}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(__import__(f"{__name__}.{home}", fromlist=[name]), name)
    globals()[name] = value
    return value


__all__ = [
    "Artifact",
    "CompiledJit",
    "JitFunction",
    "KernelFunction",
    "PointerArg",
    "PointerSpec",
    "ScalarSpec",
    "TensorArg",
    "TensorSpec",
    "clear_caches",
    "compile",
    "from_c_void_p",
    "from_dlpack",
    "from_torch_tensor",
    "jit",
    "kernel",
    "parse_spec",
    "register_argument",
]
