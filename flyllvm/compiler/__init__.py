"""Compiling kernels: ``import flyllvm.compiler as flyc``."""

from __future__ import annotations

from .kernel import KernelFunction, kernel
from .specs import PointerSpec, ScalarSpec, TensorSpec, parse_spec

__all__ = ["KernelFunction", "PointerSpec", "ScalarSpec", "TensorSpec", "kernel", "parse_spec"]
