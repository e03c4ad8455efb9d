"""A look over LLVM IR text that others wrote, before LLVM sees it."""

from __future__ import annotations

from ..errors import CodegenError, FlyError
from .backend import backend_for
from .intrinsics import find
from .module import WORD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..target import Target

_MARK = "@llvm.amdgcn."
_TRIPLE = "target triple"
_CPU = '"target-cpu"="'


def check_llvm_text(ir_text: str, target: Target) -> None:
    """Checks the AMDGPU intrinsics, the triple and the processors of a module.

    LLVM takes an unknown ``llvm.amdgcn.*`` name for an external function, and dies in instruction selection on one
    that the target lacks.  It makes a function's code for the processor in the function's attributes, whatever the
    code object is for.

    Raises:
        CodegenError: No such intrinsic, or a triple or processor of another machine; names the line of the text.
        TargetError: The target lacks the intrinsic.
    """
    triple = backend_for(target).triple
    at = ir_text.find(_TRIPLE)
    if at >= 0:
        written = ir_text[at:].partition('"')[2].partition('"')[0]
        if written and written.partition("-")[0] != triple.partition("-")[0]:
            raise CodegenError(
                f"the module is for {written}, the target {target} needs {triple}",
                f"line {ir_text.count(chr(10), 0, at) + 1}",
                "compile it for its own machine, or change its target triple",
            )
    at = ir_text.find(_CPU)
    while at >= 0:
        processor = ir_text[at + len(_CPU) :].partition('"')[0]
        if processor != target.processor:
            raise CodegenError(
                f"the module has code for {processor}, the target is {target}",
                f"line {ir_text.count(chr(10), 0, at) + 1}",
                f'compile it for {processor}, or remove its "target-cpu"',
            )
        at = ir_text.find(_CPU, at + 1)
    seen: set[str] = set()
    at = ir_text.find(_MARK)
    while at >= 0:
        end = at + len(_MARK)
        while end < len(ir_text) and ir_text[end] in WORD:
            end += 1
        name = ir_text[at + 1 : end]
        if name not in seen:
            seen.add(name)
            try:
                find(name, target)
            except FlyError as e:
                raise e.at(f"line {ir_text.count(chr(10), 0, at) + 1} of the LLVM IR") from None
        at = ir_text.find(_MARK, end)
