"""Builds the HIP double with the system's C compiler and steers it from Python."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

SOURCES = Path(__file__).parent
_WARNINGS = ["-Wall", "-Wextra"]


class Launch(ctypes.Structure):
    """What the double hands to its callback; sizes in bytes, grid in workgroups."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("image", ctypes.c_void_p),
        ("image_size", ctypes.c_size_t),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_uint32),
        ("kernarg_size", ctypes.c_uint32),
        ("kernarg", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("descriptor", ctypes.c_uint64),
        ("explicit_size", ctypes.c_uint32),
    ]

    def segment(self) -> bytes:
        """The whole kernarg segment."""
        return ctypes.string_at(self.kernarg, self.kernarg_size)


_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Launch))


def compiler() -> str:
    """The C compiler; a missing one is said in a sentence."""
    found = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not found:
        raise RuntimeError("tests of the HIP launch path need a C compiler: install one, or set CC")
    return found


def build(folder: Path, *flags: str) -> Path:
    """Compiles the double into ``folder/lib``, where ROCM_PATH expects it."""
    library = folder / "lib" / "libamdhip64.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    sources = sorted(map(str, SOURCES.glob("*.c")))
    command = [compiler(), "-std=c11", "-O1", "-g", "-fPIC", "-shared", "-fvisibility=hidden", *_WARNINGS, *flags]
    command += ["-Wl,-soname,libamdhip64.so", "-o", str(library), *sources, "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the HIP double does not compile:\n{done.stderr}")
    return library


class Double:
    """The double that hip-python has loaded into this process."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        for name, result in (
            ("live_allocations", ctypes.c_size_t), ("live_modules", ctypes.c_size_t),
            ("live_handles", ctypes.c_size_t), ("launches", ctypes.c_size_t), ("message", ctypes.c_char_p),
        ):  # fmt: skip
            getattr(self._library, f"hipdouble_{name}").restype = result
        self._library.hipdouble_bytes_left.restype = ctypes.c_size_t
        self._library.hipdouble_bytes_left.argtypes = [ctypes.c_void_p]
        self._library.hipdouble_register_image.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._callback: object = None

    def configure(self, arch: str, devices: int = 1) -> None:
        """Says which GPU the double plays."""
        if self._library.hipdouble_configure(arch.encode(), devices):
            raise ValueError(self.message)

    def on_launch(self, run: Callable[[Launch], int | None] | None) -> None:
        """Computes launches; what ``run`` returns becomes the launch's error."""
        callback = _CALLBACK((lambda call: run(call.contents) or 0) if run else 0)
        self._library.hipdouble_on_launch(callback)
        self._callback = callback

    def bytes_left(self, address: int) -> int:
        """Bytes from an address to the end of its allocation."""
        return int(self._library.hipdouble_bytes_left(address))

    @property
    def message(self) -> str:
        """Why the last call that failed did so."""
        return bytes(self._library.hipdouble_message()).decode()

    @property
    def live(self) -> tuple[int, int, int]:
        """Allocations, modules, and streams with events that are alive."""
        library = self._library
        return (
            library.hipdouble_live_allocations(),
            library.hipdouble_live_modules(),
            library.hipdouble_live_handles(),
        )

    @property
    def launches(self) -> int:
        """Launches that passed all checks."""
        return int(self._library.hipdouble_launches())
