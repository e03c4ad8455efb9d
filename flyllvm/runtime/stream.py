"""Streams and events."""

from __future__ import annotations

from ..errors import LaunchError
from .hip import HipError, hip


class _Handle:
    """A HIP object that is destroyed once."""

    __slots__ = ("handle",)
    _create = _destroy = _kind = ""

    def __init__(self) -> None:
        self.handle = 0
        self.handle = int(hip().one(self._create))

    def close(self) -> None:
        """Destroys it; may be called again."""
        handle, self.handle = self.handle, 0
        if handle:
            hip().call(self._destroy, handle)

    def live(self) -> int:
        """The handle as a number, for other libraries.

        Raises:
            LaunchError: It was closed.
        """
        if not self.handle:
            raise LaunchError(f"the {self._kind} was closed", fix="use it before close() or inside its with block")
        return self.handle

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "handle", 0):
            try:
                self.close()
            except (HipError, TypeError, AttributeError):
                self.handle = 0  # interpreter exit: the driver cleans up


class Stream(_Handle):
    """A queue of work on the device."""

    __slots__ = ()
    _create, _destroy, _kind = "hipStreamCreate", "hipStreamDestroy", "stream"

    def synchronize(self) -> None:
        """Waits until all work in it is done."""
        hip().call("hipStreamSynchronize", self.live())

    def wait(self, event: Event) -> None:
        """Makes later work in this stream wait for an event."""
        hip().call("hipStreamWaitEvent", self.live(), event.live(), 0)

    def __enter__(self) -> Stream:
        return self


class Event(_Handle):
    """A mark in a stream, for order and time."""

    __slots__ = ()
    _create, _destroy, _kind = "hipEventCreate", "hipEventDestroy", "event"

    def record(self, stream: Stream | None = None) -> None:
        """Puts the mark into a stream; the default stream where none is given."""
        hip().call("hipEventRecord", self.live(), None if stream is None else stream.live())

    def synchronize(self) -> None:
        """Waits until the mark is reached."""
        hip().call("hipEventSynchronize", self.live())

    def elapsed_ms(self, earlier: Event) -> float:
        """Time since an earlier event, in milliseconds."""
        return float(hip().one("hipEventElapsedTime", earlier.live(), self.live()))

    def __enter__(self) -> Event:
        return self


def synchronize() -> None:
    """Waits until the current device has done all its work."""
    hip().call("hipDeviceSynchronize")
