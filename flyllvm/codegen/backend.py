"""What differs between the machines LLVM compiles for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from ..ir.protocols import LLValue
    from ..target import Target
    from .function import FunctionBuilder
    from .options import Options
else:
    Protocol = object


class KernelFacts:
    """What code generation knows of one kernel.

    Attributes:
        name: Symbol.
        block_size: Work items per workgroup in x, y, z, or ``None`` where the launch decides.
        waves_per_eu: Waves per SIMD wanted: a number or (least, most); ``None`` leaves it to LLVM.
        max_registers: Vector registers per lane that LLVM may use at most, accumulation ones included, or ``None``.
        cluster: Workgroups of a cluster in x, y, z.
        intrinsics: Names of the intrinsics that were emitted.
        carried_registers: 32-bit registers per lane that the kernel's loops carry, at most.
        prints: Whether it has a trailing argument for what it prints.
    """

    __slots__ = (
        "block_size", "carried_registers", "cluster", "intrinsics", "max_registers", "name", "prints", "waves_per_eu",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        block_size: tuple[int, int, int] | None = None,
        waves_per_eu: int | tuple[int, int] | None = None,
        max_registers: int | None = None,
        cluster: tuple[int, int, int] = (1, 1, 1),
    ) -> None:
        self.name = name
        self.block_size = block_size
        self.waves_per_eu = waves_per_eu
        self.max_registers = max_registers
        self.cluster = cluster
        self.intrinsics: set[str] = set()
        self.carried_registers = 0
        self.prints = False

    @property
    def threads(self) -> int | None:
        """Work items per workgroup, or ``None`` where the launch decides."""
        if self.block_size is None:
            return None
        x, y, z = self.block_size
        return x * y * z


class Backend(Protocol):
    """One LLVM target as code generation sees it."""

    name: str
    triple: str
    data_layout: str

    def space(self, name: str) -> int:
        """LLVM's number of a fly address space."""

    def kernel_linkage(self) -> str:
        """What stands between ``define`` and the result type of a kernel."""

    def attributes(self, facts: KernelFacts, target: Target, options: Options) -> list[str]:
        """Function attributes of a kernel, each as text."""

    def module_flags(self, options: Options) -> list[str]:
        """Module flags, each the inside of a metadata node."""

    def thread_id(self, em: FunctionBuilder, facts: KernelFacts, dim: int) -> LLValue:
        """Index of the work item in its workgroup, i32; ``dim`` is 0, 1 or 2."""

    def block_id(self, em: FunctionBuilder, facts: KernelFacts, dim: int) -> LLValue:
        """Index of the workgroup in the grid, i32."""

    def block_dim(self, em: FunctionBuilder, facts: KernelFacts, dim: int) -> LLValue:
        """Work items per workgroup, i32."""

    def grid_dim(self, em: FunctionBuilder, facts: KernelFacts, dim: int) -> LLValue:
        """Workgroups in the grid, i32."""

    def lane_id(self, em: FunctionBuilder, facts: KernelFacts) -> LLValue:
        """Index of the lane in its wave, i32."""

    def barrier(self, em: FunctionBuilder, fences: bool) -> None:
        """All waves of the workgroup arrive; with fences, their writes are seen after it."""

    def finish(self, object_bytes: bytes) -> bytes:
        """Turns LLVM's object file into what is loaded."""


def backend_for(target: Target) -> Backend:
    """The backend of a target."""
    if target.chip.family == "host":
        from .x86 import X86

        return X86()
    from .amdgpu import Amdgpu

    return Amdgpu()
