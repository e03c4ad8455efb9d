"""One smoke test: a kernel with its inputs."""

from __future__ import annotations

import numpy as np

from ...codegen.options import Options
from ...compiler.pipeline import link_stage, lower, object_stage
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
        args: Arrays and numbers, one per argument.
        outputs: Positions of the arrays that the kernel writes.
    """

    __slots__ = ("args", "block", "grid", "group", "llvm_ir", "name", "outputs", "target")

    def __init__(
        self,
        name: str,
        group: str,
        target: Target,
        llvm_ir: str,
        *,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Any],
        outputs: Sequence[int],
    ) -> None:
        self.name = name
        self.group = group
        self.target = target
        self.llvm_ir = llvm_ir
        self.grid = grid
        self.block = block
        self.args = list(args)
        self.outputs = tuple(outputs)

    def compile(self) -> CodeObject:
        """The linked code object.

        Raises:
            FlyError: It does not compile.
        """
        return link_stage(object_stage(self.llvm_ir, self.target, OPTIONS, _Clock(), check=True).object)

    def fresh_args(self) -> list[Any]:
        """The arguments with copies of the arrays."""
        return [a.copy() if isinstance(a, np.ndarray) else a for a in self.args]


def _Clock() -> Any:
    from ...compiler.pipeline import Timings

    return Timings()


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
