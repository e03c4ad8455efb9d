"""GPUs as HIP sees them, and the checks that need no HIP call."""

from __future__ import annotations

from ..codeobject import KernelInfo, TargetId
from ..errors import LaunchError
from .hip import hip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Work items of a launch in one dimension, by HIP's rule: below 2**32.
_MAX_GLOBAL = (1 << 32) - 1


class Device:
    """One GPU.

    Attributes:
        index: Number among the visible devices.
        name: Marketing name.
        target_id: Processor with its xnack and sramecc modes.
        wave_size: Lanes in a wave, the default of the device.
        compute_units: Number of compute units.
        lds_bytes: LDS a workgroup may use, in bytes.
        max_threads: Most work items in a workgroup.
        max_block: Most work items of a workgroup in x, y, z.
        max_grid: Most workgroups of a launch in x, y, z.
        memory_bytes: Device memory in bytes.
    """

    __slots__ = (
        "compute_units", "index", "lds_bytes", "max_block", "max_grid", "max_threads", "memory_bytes", "name",
        "target_id", "wave_size",
    )  # fmt: skip

    def __init__(self, index: int) -> None:
        """Asks HIP for the properties of a device.

        Raises:
            HipError: No such device, or HIP is not available.
        """
        properties = hip().properties(index)
        self.index = index
        self.name = _text(properties.name)
        self.target_id = TargetId.parse(_text(properties.gcnArchName))
        self.wave_size = int(properties.warpSize)
        self.compute_units = int(properties.multiProcessorCount)
        self.lds_bytes = int(properties.sharedMemPerBlock)
        self.max_threads = int(properties.maxThreadsPerBlock)
        self.max_block = _triple(properties.maxThreadsDim)
        self.max_grid = _triple(properties.maxGridSize)
        self.memory_bytes = int(properties.totalGlobalMem)

    @staticmethod
    def current() -> Device:
        """The device that HIP uses in this thread."""
        return device(int(hip().one("hipGetDevice")))

    def use(self) -> None:
        """Makes it the device that HIP uses in this thread."""
        hip().call("hipSetDevice", self.index)

    def __repr__(self) -> str:
        return f"Device({self.index}, {self.name!r}, {str(self.target_id)!r})"


_known: dict[int, Device] = {}


def device(index: int) -> Device:
    """A device by its number; its properties are asked for once.

    Raises:
        HipError: No such device, or HIP is not available.
    """
    found = _known.get(index)
    if found is None:
        found = _known[index] = Device(index)
    return found


def devices() -> list[Device]:
    """All visible devices.

    Raises:
        HipError: HIP is not available.
    """
    return [device(i) for i in range(int(hip().one("hipGetDeviceCount")))]


def check_launch(
    kernel: KernelInfo,
    on: Device,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    dynamic_lds_bytes: int = 0,
) -> None:
    """Checks a launch against the kernel and the device, before HIP sees it.

    Args:
        kernel: The kernel.
        on: The device.
        grid: Number of workgroups in x, y, z.
        block: Work items in a workgroup in x, y, z.
        dynamic_lds_bytes: LDS asked for at launch, in bytes.

    Raises:
        LaunchError: The kernel or the device cannot take it.
    """
    where = f"launch of {kernel.name}"
    if len(grid) != 3 or len(block) != 3:
        raise LaunchError(f"grid {grid}, block {block}", where, "give three sizes each: x, y, z")
    for name, sizes, limits in (("grid", grid, on.max_grid), ("block", block, on.max_block)):
        for axis, size, limit in zip("xyz", sizes, limits, strict=True):
            if type(size) is not int or not 1 <= size <= limit:
                raise LaunchError(f"{name}.{axis} = {size!r}", where, f"use an int from 1 to {limit}")
    if kernel.cluster_dims not in (None, (1, 1, 1)):
        raise LaunchError(
            f"{kernel.name} is compiled for clusters of {kernel.cluster_dims} workgroups",
            where,
            "HIP launches no clusters from here yet: compile it without cluster=, or run it in the simulator",
        )
    for axis, groups, items in zip("xyz", grid, block, strict=True):
        if groups * items > _MAX_GLOBAL:
            raise LaunchError(
                f"{groups} workgroups of {items} work items in {axis}", where, "keep their product below 2**32"
            )
    threads = block[0] * block[1] * block[2]
    limit = min(kernel.max_workgroup_size, on.max_threads)
    if threads > limit:
        raise LaunchError(
            f"block {block} has {threads} work items; {kernel.name} was compiled for at most "
            f"{kernel.max_workgroup_size}, the device takes {on.max_threads}",
            where,
            f"use at most {limit}, or compile the kernel for a larger workgroup",
        )
    if kernel.reqd_workgroup_size not in (None, tuple(block)):
        raise LaunchError(f"block {block}", where, f"{kernel.name} was compiled for {kernel.reqd_workgroup_size} only")
    lds = kernel.lds_bytes + dynamic_lds_bytes
    if dynamic_lds_bytes < 0 or lds > on.lds_bytes:
        raise LaunchError(
            f"{kernel.lds_bytes} bytes of LDS in the kernel and {dynamic_lds_bytes} at launch; "
            f"{on.target_id.processor} has {on.lds_bytes}",
            where,
            f"ask for at most {on.lds_bytes - kernel.lds_bytes} bytes at launch",
        )


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _triple(values: Iterable[int]) -> tuple[int, int, int]:
    x, y, z = values
    return int(x), int(y), int(z)
