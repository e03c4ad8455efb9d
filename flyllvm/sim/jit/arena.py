"""Memory that this process and the worker share: one file, mapped by both, that grows as needed."""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from typing import Any

import numpy as np

from ..values import Array

# A larger file is not kept for the next run.
_KEPT_BYTES = 1 << 26


class Arena:
    """A shared file.

    Attributes:
        lock: Held while a run uses the file.
        path: Where another process of the same user finds it.
        size: Its size in bytes.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.path, self.size, self._owner, self._fd = "", 0, 0, -1
        self._memory: Any = None

    def view(self, size: int) -> Array:
        """At least ``size`` bytes of the file, mapped here."""
        if size > self.size or self._owner != os.getpid():  # a forked child must not write into its parent's
            self._make(max(1 << 20, 1 << (size - 1).bit_length()))
        return np.frombuffer(self._memory, np.uint8)

    def trim(self) -> None:
        """Gives a large file back to the system."""
        if self.size > _KEPT_BYTES and self._owner == os.getpid():
            os.close(self._fd)
            self._memory, self.size, self._owner = None, 0, 0

    def _make(self, size: int) -> None:
        if self._owner == os.getpid():
            os.close(self._fd)
        if hasattr(os, "memfd_create"):
            self._fd = os.memfd_create("flyllvm-simulator")
            self.path = f"/proc/{os.getpid()}/fd/{self._fd}"
        else:
            self._fd, self.path = tempfile.mkstemp(prefix="flyllvm-simulator")
        os.ftruncate(self._fd, size)
        self._memory = mmap.mmap(self._fd, size)
        self.size, self._owner = size, os.getpid()
        if not hasattr(os, "memfd_create"):
            import atexit

            atexit.register(_remove, self.path)


def _remove(path: str) -> None:
    """Deletes the file of a system without unnamed ones."""
    if os.path.exists(path):
        os.unlink(path)
