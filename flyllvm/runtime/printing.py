"""Launches of kernels that print."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from .module import Function
    from .stream import Stream


def launch_printing(
    function: Function,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    args: Sequence[object],
    formats: Sequence[str],
    *,
    types: tuple[str | None, ...] | None = None,
    dynamic_lds_bytes: int = 0,
    stream: Stream | int | None = None,
    printf_to: TextIO | None = None,
) -> None:
    """Launches a kernel that prints, waits for the device, and writes what it printed.

    Args:
        function: The kernel.
        grid: Number of workgroups in x, y, z.
        block: Work items in a workgroup in x, y, z.
        args: Its arguments without the trailing one, which is made here.
        formats: The formats of its module; see `flyllvm.printf`.
        types: Element type of each of ``args``.
        dynamic_lds_bytes: LDS on top of what the kernel declares, in bytes.
        stream: The stream.
        printf_to: Where the lines go; by default ``sys.stdout``.

    Raises:
        LaunchError: The launch does not fit, or ``FLYLLVM_PRINTF_BYTES`` is wrong.
        HipError: HIP refuses it.
    """
    import numpy as np

    from ..printf import new_buffer, write_lines
    from .array import DeviceArray
    from .device import Device
    from .stream import synchronize

    before = Device.current()
    function.module.device.use()
    try:
        buffer = DeviceArray.from_numpy(np.frombuffer(new_buffer(), np.uint8))
        synchronize()
        function.launch(
            grid,
            block,
            [*args, buffer],
            types=None if types is None else (*types, None),
            dynamic_lds_bytes=dynamic_lds_bytes,
            stream=stream,
        )
        synchronize()
        written = buffer.numpy()
    finally:
        before.use()
    write_lines(memoryview(written), formats, printf_to)
