"""Executes launches of the double in the simulator: the kernel's LLVM IR over the double's device memory."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np

from flyllvm.codeobject import CodeObject
from flyllvm.errors import FlyError
from flyllvm.sim import parse_module, simulate
from tests.hip_double.build import Double, Launch

_LAUNCH_FAILURE = 719
_FLOATS = {"half": "<e", "float": "<f", "double": "<d"}


class Executor:
    """Knows the LLVM IR of each image, and plays the GPU.

    Attributes:
        error: What went wrong in the last launch, or ``None``.
    """

    def __init__(self, double: Double) -> None:
        self.double = double
        self.texts: dict[bytes, str] = {}
        self.error: FlyError | None = None
        double.on_launch(self.run)

    def knows(self, image: bytes, ir_text: str) -> None:
        """Says which LLVM IR an image was compiled from."""
        self.texts[image] = ir_text

    def run(self, launch: Launch) -> int:
        """Runs one launch; a fault of the kernel becomes HIP's launch failure."""
        image = ctypes.string_at(launch.image, launch.image_size)
        text, name = self.texts[image], launch.name.decode()
        code = CodeObject.from_image(image)
        segment = launch.segment()
        parameters = parse_module(text).functions[name].params
        args = [
            self._value(segment[a.offset : a.offset + a.size], a.is_pointer, str(p.type))
            for a, p in zip(code.kernels[name].args, parameters, strict=True)
        ]
        try:
            simulate(
                text,
                name,
                grid=tuple(launch.grid),
                block=tuple(launch.block),
                args=args,
                target=str(code.target),
                dynamic_lds_bytes=launch.shared,
                wave_size=code.kernels[name].wave_size,
            )
        except FlyError as error:
            self.error = error
            return _LAUNCH_FAILURE
        return 0

    def _value(self, raw: bytes, pointer: bool, type: str) -> Any:
        number = int.from_bytes(raw, "little")
        if pointer:
            return None if number == 0 else self._memory(number)
        if type == "bfloat":  # the upper half of a float
            return struct.unpack("<f", b"\0\0" + raw)[0]
        return struct.unpack(_FLOATS[type], raw)[0] if type in _FLOATS else number

    def _memory(self, address: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        size = self.double.bytes_left(address)
        return np.frombuffer((ctypes.c_uint8 * size).from_address(address), np.uint8)
