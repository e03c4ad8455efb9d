"""Compiling kernels: ``import flyllvm.compiler as flyc``."""

from __future__ import annotations

from ..expr.specs import PointerSpec, ScalarSpec, TensorSpec, parse_spec
from .artifact import Artifact
from .compile import compile
from .kernel import KernelFunction, kernel

__all__ = [
    "Artifact",
    "KernelFunction",
    "PointerSpec",
    "ScalarSpec",
    "TensorSpec",
    "compile",
    "kernel",
    "parse_spec",
]
