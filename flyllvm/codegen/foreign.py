"""A look over LLVM IR text that others wrote, before LLVM sees it, and over what LLVM made of it.

LLVM takes much that it cannot do: it makes something else of it, without a word.
"""

from __future__ import annotations

from ..errors import CodegenError, FlyError
from .backend import backend_for
from .intrinsics import find
from .module import WORD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..codeobject import CodeObject
    from ..target import Target

_INTRINSIC = "@llvm.amdgcn."
_TRIPLE = "target triple"
_CPU = '"target-cpu"="'
_GROUP = '"amdgpu-flat-work-group-size"="'
_CAST = "addrspacecast"
_PRINTF = "@printf("
# Private memory and LDS: a pointer of another numbered space never points there.
_LOCAL = frozenset({3, 5})


def check_llvm_text(ir_text: str, target: Target) -> None:
    """Checks what LLVM takes in silence, or dies of in instruction selection.

    An unknown ``llvm.amdgcn.*`` name is an external function to LLVM, and one that the target lacks ends it.  It makes
    a function's code for the processor in the function's attributes, whatever the code object is for; casts between
    address spaces that share no byte become undefined; calls of ``printf`` and group sizes that are none vanish.

    Raises:
        CodegenError: One of these; names the line of the text.
        TargetError: The target lacks an intrinsic.
    """
    _check_triple(ir_text, target)
    for at, processor in _values(ir_text, _CPU):
        if processor != target.processor:
            raise CodegenError(
                f"the module has code for {processor}, the target is {target}",
                _line(ir_text, at),
                f'compile it for {processor}, or remove its "target-cpu"',
            )
    for at, sizes in _values(ir_text, _GROUP):
        _check_group_size(sizes, target, _line(ir_text, at))
    if _CAST in ir_text:
        _check_casts(ir_text)
    for at, _ in _values(ir_text, _PRINTF):
        if "declare" in ir_text[ir_text.rfind("\n", 0, at) + 1 : at]:
            raise CodegenError(
                "printf is declared: LLVM drops what it prints, as there is nobody on the host to read it",
                _line(ir_text, at),
                "print with fx.printf in a Python kernel, or remove the calls",
            )
    _check_intrinsics(ir_text, target)


def _line(ir_text: str, at: int) -> str:
    return f"line {ir_text.count(chr(10), 0, at) + 1}"


def _values(ir_text: str, mark: str) -> Iterator[tuple[int, str]]:
    """(place, text up to the next quote) of every attribute that begins so."""
    at = ir_text.find(mark)
    while at >= 0:
        yield at, ir_text[at + len(mark) :].partition('"')[0]
        at = ir_text.find(mark, at + 1)


def _check_triple(ir_text: str, target: Target) -> None:
    at = ir_text.find(_TRIPLE)
    if at < 0:
        return
    triple = backend_for(target).triple
    written = ir_text[at:].partition('"')[2].partition('"')[0]
    if written and written.partition("-")[0] != triple.partition("-")[0]:
        raise CodegenError(
            f"the module is for {written}, the target {target} needs {triple}",
            _line(ir_text, at),
            "compile it for its own machine, or change its target triple",
        )


def _check_group_size(sizes: str, target: Target, where: str) -> None:
    low, _, high = sizes.partition(",")
    if not low.isdecimal() or not high.isdecimal():
        return  # LLVM says so
    most = target.chip.max_workgroup_size
    if not 1 <= int(low) <= int(high) <= most:
        raise CodegenError(
            f"amdgpu-flat-work-group-size is {sizes!r}, which LLVM ignores",
            where,
            f"write the least and the most work items of a workgroup, from 1 to {most} on {target.processor}",
        )


def _check_casts(ir_text: str) -> None:
    import re

    space = r"(?:<\d+ x )?ptr(?: addrspace\((\d+)\))?>?"
    for found in re.finditer(rf"\b{_CAST} ?\(?{space} ((?:(?!{_CAST})[^\n])*?) to {space}", ir_text):
        source, goal = int(found[1] or 0), int(found[3] or 0)
        if source != goal and source and goal and (source in _LOCAL or goal in _LOCAL):
            raise CodegenError(
                f"addrspacecast from address space {source} to {goal}: no memory is in both, LLVM makes poison of it",
                _line(ir_text, found.start()),
                "keep the pointer in its own address space, or go through a flat one that points there",
            )


def _check_intrinsics(ir_text: str, target: Target) -> None:
    seen: set[str] = set()
    at = ir_text.find(_INTRINSIC)
    while at >= 0:
        end = at + len(_INTRINSIC)
        while end < len(ir_text) and ir_text[end] in WORD:
            end += 1
        name = ir_text[at + 1 : end]
        if name not in seen:
            seen.add(name)
            try:
                find(name, target)
            except FlyError as e:
                raise e.at(f"{_line(ir_text, at)} of the LLVM IR") from None
        at = ir_text.find(_INTRINSIC, end)


def check_code(ir_text: str, code: CodeObject, target: Target) -> None:
    """Checks that the code object has every kernel of the text, in a form that can be launched.

    Raises:
        CodegenError: A kernel is missing, has no name, a stack without a bound, or a workgroup that no GPU has.
    """
    for name in _kernels_of(ir_text):
        if name not in code.kernels:
            raise CodegenError(
                f"LLVM left kernel {name} out of the code object",
                fix="define it with external or protected linkage, without features that the target lacks",
            )
    if not code.kernels:
        raise CodegenError("no kernel", fix="define a function with the calling convention amdgpu_kernel")
    for kernel in code.kernels.values():
        if not kernel.name:
            raise CodegenError("a kernel has no name, so nothing can launch it", fix="give it a name")
        if kernel.uses_dynamic_stack:
            raise CodegenError(
                f"kernel {kernel.name} needs private memory that is not known before it runs (recursion, a call "
                "through a pointer, an alloca of run-time size or in a loop): what a launch gives it may be too little",
                fix="write the recursion as a loop, call functions by name, and put allocas of fixed size at the start",
            )
        shape = kernel.reqd_workgroup_size
        most = target.chip.max_workgroup_size
        if shape is not None and not 1 <= shape[0] * shape[1] * shape[2] <= most:
            raise CodegenError(
                f"kernel {kernel.name} requires workgroups of {shape}, which no launch can give it",
                fix=f"let reqd_work_group_size multiply to 1 to {most} work items on {target.processor}",
            )


def _kernels_of(ir_text: str) -> list[str]:
    """Names of the kernels that a text defines, those with escapes in them left out."""
    import re

    found = re.findall(r'^define [^@\n]*\bamdgpu_kernel [^@\n]*@(?:"([^"\n]*)"|([\w.$-]+))', ir_text, re.MULTILINE)
    return [name for pair in found if (name := pair[0] or pair[1]) and "\\" not in name]


__all__ = ["check_code", "check_llvm_text"]
