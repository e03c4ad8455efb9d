"""What a caller passes to `simulate`: checked before anything runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LaunchError
from ..target import CHIPS, Target

if TYPE_CHECKING:
    from .compile import Program
    from .ir import Function, Module

# Compilers newer than LLVM 22 name the processor in the triple: amdgpu9.42-amd-amdhsa is gfx942.
_TRIPLE = re.compile(r'^\s*target triple\s*=\s*"amdgpu(\d+)\.([0-9a-f]+)-')
_HEAD_LINES = 64


def module_text(ir_text: Any) -> str:
    """The text of a module, or of an artifact.

    Raises:
        LaunchError: It is something else, such as the path of a file.
    """
    text = getattr(ir_text, "llvm_ir", ir_text)
    if not isinstance(text, str):
        fix = "pass Path(...).read_text()" if hasattr(text, "read_text") else "pass LLVM IR as a str, or an artifact"
        raise LaunchError(f"the kernel's text is {type(text).__name__}", fix=fix)
    if text.endswith(".ll") and "\n" not in text:
        raise LaunchError(f"{text!r} is the name of a file, not LLVM IR", fix="pass Path(...).read_text()")
    return text


def dims(name: str, value: Any) -> tuple[int, int, int]:
    """One to three extents."""
    items = tuple(np.atleast_1d(value)) if isinstance(value, np.ndarray) else value
    items = tuple(items) if isinstance(items, (tuple, list)) else (items,)
    if not 1 <= len(items) <= 3 or not all(isinstance(i, (int, np.integer)) and 0 < i < 1 << 31 for i in items):
        raise LaunchError(f"{name} is {value!r}", fix="pass one to three positive ints, each below 2**31")
    padded = (*map(int, items), 1, 1)
    return padded[0], padded[1], padded[2]


def number(name: str, value: Any, least: int) -> int:
    """A whole number from ``least`` on."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise LaunchError(f"{name} is {value!r}", fix=f"pass an int from {least} on")
    return int(value)


def name(kernel: Any) -> str | None:
    """The name of a kernel, without the ``@`` of the IR."""
    if kernel is not None and not isinstance(kernel, str):
        raise LaunchError(f"the kernel's name is {kernel!r}", fix="pass it as a str")
    return kernel if kernel is None else kernel.removeprefix("@")


def sequence(args: Any) -> Sequence[Any]:
    """The arguments as a list."""
    if isinstance(args, (str, bytes, dict, np.ndarray)) or not hasattr(args, "__iter__"):
        raise LaunchError(f"args is {type(args).__name__}", fix="pass a list with one value for each parameter")
    return list(args)


def check_block(program: Program, block: tuple[int, int, int], target: Target) -> None:
    """Refuses a workgroup that the chip or the kernel does not take."""
    lanes = block[0] * block[1] * block[2]
    if lanes > target.chip.max_workgroup_size:
        raise LaunchError(
            f"block {block} has {lanes} work items, {target.processor} takes {target.chip.max_workgroup_size}",
            fix="use smaller workgroups",
        )
    limits = program.kernel.attrs.get("amdgpu-flat-work-group-size")
    if limits is not None:
        low, high = _flat_sizes(program.kernel.name, limits)
        if not low <= lanes <= high:
            raise LaunchError(
                f"block {block} has {lanes} work items, @{program.kernel.name} was compiled for {low} to {high}",
                fix="launch it with that size, or change its amdgpu-flat-work-group-size",
            )


def check_promised_sizes(program: Program, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
    """Refuses a launch that breaks what the kernel was compiled for: LLVM has folded these sizes into the code."""
    kernel, name = program.kernel, program.kernel.name
    node = kernel.attrs.get("!reqd_work_group_size", "")
    required = tuple(map(int, re.findall(r"i\d+ (\d+)", program.module.metadata.get(node, node))))
    if len(required) == 3 and required != block:
        raise LaunchError(
            f"block is {block}, @{name} was compiled for {required} (reqd_work_group_size)",
            fix=f"launch it with block={required}",
        )
    most = kernel.attrs.get("amdgpu-max-num-workgroups", "").split(",")
    if len(most) == 3 and all(p.isdecimal() for p in most) and any(g > int(p) for g, p in zip(grid, most, strict=True)):
        raise LaunchError(
            f"grid is {grid}, @{name} was compiled for at most ({', '.join(most)}) workgroups",
            fix="use a smaller grid, or change its amdgpu-max-num-workgroups",
        )


def _flat_sizes(kernel: str, text: str) -> tuple[int, int]:
    """The least and the greatest workgroup of an ``amdgpu-flat-work-group-size``."""
    parts = text.split(",")
    if len(parts) != 2 or not all(p.strip().isascii() and p.strip().isdigit() for p in parts):
        raise LaunchError(
            f'@{kernel} has "amdgpu-flat-work-group-size"="{text}"', fix='write two numbers of work items: "64,256"'
        )
    return int(parts[0]), int(parts[1])


def kernel_of(module: Module, kernel: str | None) -> Function:
    """The kernel of a module that is meant.

    Raises:
        LaunchError: There is none, or it is not clear which.
    """
    names = module.kernels()
    if kernel is None:
        if len(names) != 1:
            raise LaunchError(f"the module has {len(names)} kernels: {', '.join(names) or 'none'}", fix="name one")
        kernel = names[0]
    function = module.functions.get(kernel)
    if function is None or not function.blocks:
        raise LaunchError(f"the module has no kernel @{kernel}", fix=f"it has: {', '.join(names) or 'none'}")
    return function


def processor_of(module: Module, kernel: Function) -> str | None:
    """The processor that a kernel was compiled for, where its ``target-cpu`` or the triple names one."""
    named = kernel.attrs.get("target-cpu")
    if named:
        return named
    triple = next((m for m in map(_TRIPLE.match, module.lines[:_HEAD_LINES]) if m), None)
    return None if triple is None else f"gfx{triple[1]}{triple[2]}"


def _waves_of(kernel: Function) -> int | None:
    features = kernel.attrs.get("target-features", "").split(",")
    return next((size for size in (32, 64) if f"+wavefrontsize{size}" in features), None)


def target_of(module: Module, kernel: Function, target: str | Target | None, wave_size: int | None) -> Target:
    """The chip to simulate: the one asked for, else the module's, else gfx942.

    A module for one chip means something else on another: waves have another size, and intrinsics that exist on both
    do other things.

    Raises:
        LaunchError: The module was compiled for another chip or wave size, or for one that the simulator lacks.
        TargetError: There is no such target.
    """
    named, waves = processor_of(module, kernel), _waves_of(kernel)
    chip = None if target is None else Target.parse(target, wave_size)
    if named is not None and named not in CHIPS and chip is None:
        raise LaunchError(
            f"@{kernel.name} was compiled for {named}, which the simulator does not know",
            fix=f"pass a target that is close enough, of: {', '.join(CHIPS)}",
        )
    if chip is not None and named in CHIPS and named != chip.processor:
        raise LaunchError(
            f"@{kernel.name} was compiled for {named}, the target is {chip}",
            fix=f"simulate it on {named}, or compile it for {chip.processor}",
        )
    if waves is not None and (wave_size or waves) != waves:
        raise LaunchError(
            f"@{kernel.name} was compiled for waves of {waves} lanes, the wave size is {wave_size}",
            fix="leave the wave size out",
        )
    if isinstance(target, Target) and wave_size is None and waves is not None and target.wave_size != waves:
        raise LaunchError(
            f"@{kernel.name} was compiled for waves of {waves} lanes, the target has {target.wave_size}",
            fix=f"pass Target.parse({str(target)!r}, {waves})",
        )
    if chip is not None and (waves is None or chip.wave_size == waves):
        return chip
    return Target.parse(chip or named or "gfx942", wave_size or waves)
