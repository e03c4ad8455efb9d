"""One smoke test: a kernel with its inputs."""

from __future__ import annotations

from ...codegen.options import Options
from ...compiler.pipeline import Timings, link_stage, lower, object_stage
from ...ir.builder import Builder
from ...ir.core import Kernel, Module
from ...ir.types import Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ...codeobject import CodeObject
    from ...target import Target

OPTIONS = Options(debug=False)


class Case:
    """A kernel, its launch and its inputs.

    Attributes:
        name: Name, unique for a target.
        group: What it belongs to: ``basic``, ``copy``, ``matrix``, ...
        target: What it is for.
        llvm_ir: The kernel ``smoke`` as LLVM IR text; the simulator runs this very text.
        grid: Number of workgroups in x, y, z.
        block: Work items in a workgroup in x, y, z.
        outputs: Positions of the arrays that the kernel writes.
    """

    __slots__ = ("_args", "block", "grid", "group", "llvm_ir", "name", "outputs", "target")

    def __init__(
        self,
        name: str,
        group: str,
        target: Target,
        llvm_ir: str,
        *,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Callable[[], Sequence[Any]],
        outputs: Sequence[int],
    ) -> None:
        self.name = name
        self.group = group
        self.target = target
        self.llvm_ir = llvm_ir
        self.grid = grid
        self.block = block
        self._args = args
        self.outputs = tuple(outputs)

    def compile(self) -> CodeObject:
        """The linked code object.

        Raises:
            FlyError: It does not compile.
        """
        return link_stage(object_stage(self.llvm_ir, self.target, OPTIONS, Timings(), check=True).object)

    def fresh_args(self) -> list[Any]:
        """Arrays and numbers, one per argument; the same every time, in memory of their own."""
        return list(self._args())


def kernel_text(
    target: Target, block: tuple[int, int, int], body: Callable[..., None], arguments: dict[str, Type]
) -> str:
    """LLVM IR of a kernel ``smoke``; ``body`` gets the builder and the arguments."""
    made = Kernel("smoke")
    made.attrs["known_block_size"] = block
    values = [made.add_arg(type_, name) for name, type_ in arguments.items()]
    with Builder(made, target) as builder:
        body(builder, *values)
    return lower(Module([made]), target, OPTIONS)
