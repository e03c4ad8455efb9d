"""The host CPU: the same fly IR for one thread, to show that a backend is replaceable and to run scalar kernels."""

from __future__ import annotations

from ..ir import lltype as ll
from ..target import Chip, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.protocols import LLValue
    from .backend import KernelFacts
    from .function import FunctionBuilder
    from .options import Options


def host_target() -> Target:
    """The target that stands for one x86-64 thread."""
    chip = Chip("x86-64", "host", 0, (1,), 1 << 20)
    chip.max_workgroup_size = 1
    return Target(chip, {}, 1)


class X86:
    """``Backend`` of one x86-64 thread: a workgroup is one work item, and all memory is one address space."""

    __slots__ = ()

    name = "x86"
    triple = "x86_64-unknown-linux-gnu"
    data_layout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

    def space(self, name: str) -> int:
        """All memory is one address space."""
        return 0

    def kernel_linkage(self) -> str:
        """A plain function."""
        return ""

    def attributes(self, facts: KernelFacts, target: Target, options: Options) -> list[str]:
        """Nothing to say but that nothing is thrown."""
        return ["nounwind"]

    def module_flags(self, options: Options) -> list[str]:
        """None."""
        return []

    def thread_id(self, em: FunctionBuilder, facts: KernelFacts, dim: int) -> LLValue:
        """The only work item."""
        return em.const(ll.I32, 0)

    def block_id(self, em: FunctionBuilder, facts: KernelFacts, dim: int) -> LLValue:
        """The only workgroup."""
        return em.const(ll.I32, 0)

    def block_dim(self, em: FunctionBuilder, facts: KernelFacts, dim: int) -> LLValue:
        """One work item."""
        return em.const(ll.I32, 1)

    def grid_dim(self, em: FunctionBuilder, facts: KernelFacts, dim: int) -> LLValue:
        """One workgroup."""
        return em.const(ll.I32, 1)

    def lane_id(self, em: FunctionBuilder, facts: KernelFacts) -> LLValue:
        """The only lane."""
        return em.const(ll.I32, 0)

    def barrier(self, em: FunctionBuilder, fences: bool) -> None:
        """One thread waits for nobody."""

    def finish(self, object_bytes: bytes) -> bytes:
        """The object as it is."""
        return object_bytes
