"""Compiling kernels: ``import flyllvm.compiler as flyc``."""

from __future__ import annotations

from ..expr.specs import PointerSpec, ScalarSpec, TensorSpec, parse_spec
from .artifact import Artifact
from .binding_arrays import from_c_void_p, from_dlpack, register_argument
from .binding_pointer import PointerArg
from .binding_tensor import TensorArg
from .compile import compile
from .compiled_jit import CompiledJit
from .jit import JitFunction, jit
from .kernel import KernelFunction, kernel
from .kernel_cache import clear_caches

#: FlyDSL's name for a torch tensor as an argument; it takes any array.
from_torch_tensor = from_dlpack

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
