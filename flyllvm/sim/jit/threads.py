"""Workgroups on several threads: which ones run on which, and how their memories become one.

Every thread works on its own copy of global memory, and runs stripes of workgroups that depend on nothing but the
number of threads.  So a workgroup sees what earlier ones *of its thread* wrote, and results do not depend on timing.
Afterwards the bytes that a thread changed are taken over.  Where two threads changed the same byte, the order of the
workgroups matters: everything is thrown away and runs again on one thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..values import Array

if TYPE_CHECKING:
    from ..launch import Launch
    from ..memory import Space
    from .module import HostCode

# Stripes are small, so that threads have the same amount of work where that grows or falls along the grid.
_STRIPES, _MOST_GROUPS = 16, 64
# Steps of a lane for each byte of global memory below which copying and comparing that memory takes longer.
_LEAST_WORK = 16
# What all copies of global memory may take.
_MOST_BYTES = 1 << 31
# Bytes of memory that are compared at once: they stay in the cache.
_BLOCK_BYTES = 1 << 18


def useful(wanted: int, code: HostCode, launch: Launch, groups: int) -> int:
    """Number of threads for a launch, which must not depend on how long something took."""
    short = code.length and code.length * groups * launch.block_lanes < _LEAST_WORK * launch.heap.data.size
    fitting = _MOST_BYTES // max(1, launch.heap.data.size)
    return 1 if code.alone or short else max(1, min(wanted, groups, fitting))


class Plan:
    """Hands out the workgroups of a launch.

    Attributes:
        threads: Number of threads.
        at: First workgroup that is not handed out.
        total: End of the workgroups.
    """

    __slots__ = ("_stripe", "at", "threads", "total")

    def __init__(self, threads: int, first: int, total: int) -> None:
        self.threads, self.at, self.total = threads, first, total
        self._stripe = min(_MOST_GROUPS, max(1, (total - first) // (threads * _STRIPES)))

    def batch(self, groups: int) -> list[list[tuple[int, int]]]:
        """Ranges of workgroups (first and count) for each thread, about that many in sum.

        A thread always gets the same stripes, however they are cut into batches.
        """
        if self.threads == 1:
            count = min(groups, self.total - self.at)
            self.at += count
            return [[(self.at - count, count)]]
        out: list[list[tuple[int, int]]] = [[] for _ in range(self.threads)]
        for _ in range(max(1, groups // (self._stripe * self.threads))):
            for ranges in out:
                count = min(self._stripe, self.total - self.at)
                if count:
                    ranges.append((self.at, count))
                    self.at += count
        return out


def merge(space: Space, written: list[list[bool]], copies: list[Array]) -> bool:
    """Takes over what the threads wrote in their copies of global memory; without success nothing is changed.

    ``written`` tells for each thread to which regions it wrote.  Two of them must not have changed the same byte.
    """
    pieces: list[tuple[slice, Array]] = []
    for number, region in enumerate(space.regions):
        writers = [copy for flags, copy in zip(written, copies, strict=True) if flags[number]]
        start, end = region.start - space.base, region.start - space.base + region.size
        if len(writers) == 1:
            pieces.append((slice(start, end), writers[0][start:end]))
            continue
        for at in range(start, end if writers else start, _BLOCK_BYTES):
            place = slice(at, min(end, at + _BLOCK_BYTES))
            block = _merged(space.data[place], [copy[place] for copy in writers])
            if block is None:
                return False
            pieces.append((place, block))
    for place, data in pieces:
        space.data[place] = data
    for number, region in enumerate(space.regions):
        region.written = region.written or any(flags[number] for flags in written)
    return True


def _merged(before: Array, copies: list[Array]) -> Array | None:
    """One block of memory out of those of several threads; ``None`` where two of them changed a byte."""
    changes = [before != copy for copy in copies]
    changed = [i for i, change in enumerate(changes) if change.any()]
    if not changed:
        return before
    if len(changed) == 1:
        return copies[changed[0]]
    out, taken = before.copy(), np.zeros(before.size, bool)
    for i in changed:
        if (taken & changes[i]).any():
            return None
        taken |= changes[i]
        np.copyto(out, copies[i], where=changes[i])
    return out
