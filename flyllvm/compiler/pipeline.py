"""The stages from a kernel to a code object, each a function named after its result."""

from __future__ import annotations

import time

from ..errors import CodegenError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..codegen.options import Options
    from ..codeobject import CodeObject
    from ..ir.core import Kernel, Module
    from ..target import Target

#: Stages in order; ``stop_after`` names one of them.
STAGES = ("fly", "atoms", "ssa", "llvm", "object", "link")


class Timings:
    """CPU time per stage, in milliseconds, the worker's included.

    Attributes:
        stages: Milliseconds by stage.
        notes: Choices that were made, and why.
    """

    __slots__ = ("notes", "stages")

    def __init__(self) -> None:
        self.stages: dict[str, float] = {}
        self.notes: list[str] = []

    def run(self, name: str, fn: Callable[[], Any]) -> Any:
        """Runs and times a stage."""
        start = time.process_time()
        try:
            return fn()
        finally:
            self.add(name, (time.process_time() - start) * 1e3)

    def add(self, name: str, ms: float) -> None:
        """Adds time to a stage."""
        self.stages[name] = self.stages.get(name, 0.0) + ms

    def note(self, text: str) -> None:
        """Adds a choice."""
        self.notes.append(text)

    def render(self) -> str:
        """A table, one stage a line, and the choices below."""
        rows = [f"{name:<16}{ms:9.2f} ms" for name, ms in self.stages.items()]
        return "\n".join([*rows, f"{'total':<16}{sum(self.stages.values()):9.2f} ms", *self.notes])


def atoms_stage(module: Module, target: Target) -> Module:
    """Stage fly to stage atoms: verified before and after."""
    # Loaded here, as everything below that a hit in the disk cache does without.
    from ..ir.verifier import verify
    from ..passes import expand

    for i, kernel in enumerate(module.kernels):
        verify(kernel, "fly", target, changes_only=True)
        module.kernels[i] = expand(kernel, target)
        verify(module.kernels[i], "atoms", target, changes_only=True)
    return module


def ssa_stage(module: Module, target: Target) -> Module:
    """Stage atoms to stage ssa, verified after."""
    from ..ir.verifier import verify
    from ..passes import to_ssa

    for i, kernel in enumerate(module.kernels):
        module.kernels[i] = to_ssa(kernel, target)
        verify(module.kernels[i], "ssa", target, changes_only=True)
    return module


def lower(module: Module, target: Target, options: Options, *, ssa: bool = True, timings: Timings | None = None) -> str:
    """Fly IR to LLVM IR text.

    Args:
        module: Kernels at stage ``fly``; consumed.
        target: The target.
        options: Code generation options.
        ssa: Whether register memory becomes values; without it every fragment is private memory.
        timings: Where to add the time of each stage.
    """
    from ..codegen.emit import emit_module

    clock = timings or Timings()
    module = clock.run("atoms", lambda: atoms_stage(module, target))
    if ssa:
        module = clock.run("ssa", lambda: ssa_stage(module, target))
    text: str = clock.run("llvm", lambda: emit_module(module, target, options))
    return text


def object_stage(
    llvm_ir: str,
    target: Target,
    options: Options,
    clock: Timings,
    *,
    check: bool = False,
    passes: str | None = None,
    **limits: Any,
) -> Any:
    """LLVM IR text to an object file, in the worker; text that is not ours is checked first."""
    from ..codegen.client import compile_llvm

    start = time.process_time()
    result = compile_llvm(
        llvm_ir,
        target,
        opt_level=options.opt_level,
        passes=passes or options.passes,
        cov=options.cov,
        want=("obj",),
        check=check,
        **limits,
    )
    clock.add("worker", (time.process_time() - start) * 1e3)
    for name, ms in result.timings.items():
        clock.add(f"llvm:{name}", ms)
    return result


def link_stage(object_bytes: bytes) -> CodeObject:
    """An object file to a code object."""
    from ..codeobject import CodeObject, link

    return CodeObject.from_image(link(object_bytes))


def code_of_text(
    llvm_ir: str, target: Target, options: Options, clock: Timings, **limits: Any
) -> tuple[CodeObject, str]:
    """(code object, LLVM's warnings) of LLVM IR text that others wrote, checked before and after.

    Raises:
        CodegenError: LLVM refuses the module, dies of it, or makes something else of it.
    """
    from ..codegen.foreign import check_code

    result = object_stage(llvm_ir, target, options, clock, check=True, **limits)
    code: CodeObject = clock.run("link", lambda: link_stage(result.object))
    check_code(llvm_ir, code, target)
    return code, result.messages


def module_of(kernel: Kernel | Module) -> Module:
    """A module around a kernel."""
    from ..ir.core import Module

    return kernel if isinstance(kernel, Module) else Module([kernel])


def check_stage(stage: str | None) -> None:
    """Checks a ``stop_after``.

    Raises:
        CodegenError: There is no such stage.
    """
    if stage is not None and stage not in STAGES:
        raise CodegenError(f"unknown stage {stage!r}", fix=f"use one of: {', '.join(STAGES)}")
