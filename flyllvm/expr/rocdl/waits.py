"""Waits on memory counters, and hints to LLVM's scheduler."""

from __future__ import annotations

from ...errors import TargetError, TraceError
from ...ir.builder import Builder
from ..numeric import count_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Per encoding and counter: (lowest bit, bits) of its pieces, low piece first.
#: Source: CDNA3 and RDNA3 ISA manuals, S_WAITCNT.
_Fields = dict[str, tuple[tuple[int, int], ...]]
_CDNA: _Fields = {"vmcnt": ((0, 4), (14, 2)), "expcnt": ((4, 3),), "lgkmcnt": ((8, 4),)}
_RDNA: _Fields = {"vmcnt": ((10, 6),), "expcnt": ((0, 3),), "lgkmcnt": ((4, 6),)}
_ENCODINGS: dict[str, _Fields] = {"cdna2": _CDNA, "cdna3": _CDNA, "cdna4": _CDNA, "rdna3": _RDNA, "rdna4": _RDNA}


def _call(name: str, *numbers: int, bits: int | tuple[int, ...] = 32) -> None:
    Builder.current().intrinsic(f"llvm.amdgcn.{name}", None, numbers, bits)


def encode_waitcnt(family: str, counters: dict[str, int]) -> int:
    """The immediate of ``s_waitcnt``; a counter that is not given is at its maximum, which waits for nothing.

    Raises:
        TraceError: A count that does not fit its field.
    """
    made = 0
    for name, pieces in _ENCODINGS[family].items():
        largest = (1 << sum(n for _, n in pieces)) - 1
        count = counters.get(name, largest)
        if type(count) is not int or not 0 <= count <= largest:
            raise TraceError(f"s_waitcnt: {name}={count!r}", fix=f"use 0 to {largest}")
        for low, n in pieces:
            made |= (count & ((1 << n) - 1)) << low
            count >>= n
    return made


def s_waitcnt(
    bitfield: int | None = None, *, vmcnt: int | None = None, lgkmcnt: int | None = None, expcnt: int | None = None
) -> None:
    """Waits until at most so many operations are outstanding.

    Args:
        bitfield: The raw immediate, instead of the counters.
        vmcnt: Loads from memory (and on CDNA stores).
        lgkmcnt: LDS and scalar operations.
        expcnt: Exports.

    Raises:
        TargetError: The target has no such instruction.
        TraceError: Both forms are given, or a count is out of range.
    """
    b = Builder.current()
    family = b.target.chip.family
    if family not in _ENCODINGS:
        raise TargetError(
            f"{b.target.processor} has no s_waitcnt", b.location(), "use fx.rocdl.s_wait_loadcnt, s_wait_dscnt, ..."
        )
    given = {"vmcnt": vmcnt, "lgkmcnt": lgkmcnt, "expcnt": expcnt}
    counters = {k: v for k, v in given.items() if v is not None}
    if bitfield is not None and counters:
        raise TraceError("s_waitcnt: a bit field and counters", b.location(), "give one of them")
    if bitfield is not None:
        bitfield = count_of(bitfield, "the bit field of s_waitcnt", 0, 0xFFFF)
    _call("s.waitcnt", encode_waitcnt(family, counters) if bitfield is None else bitfield)


def _separate(counter: str, families: tuple[str, ...]) -> Callable[[int], None]:
    def wait(count: int = 0) -> None:
        b = Builder.current()
        if b.target.chip.family not in families:
            raise TargetError(f"{b.target.processor} has no s_wait_{counter}", b.location(), "use fx.rocdl.s_waitcnt")
        _call(f"s.wait.{counter}", count_of(count, f"the count of s_wait_{counter}", 0, 63), bits=16)

    wait.__name__ = wait.__qualname__ = f"s_wait_{counter}"
    wait.__doc__ = f"Waits until at most ``count`` operations of {counter} are outstanding."
    return wait


_GFX12 = ("rdna4", "gfx1250")
s_wait_loadcnt, s_wait_storecnt = _separate("loadcnt", _GFX12), _separate("storecnt", _GFX12)
s_wait_dscnt, s_wait_kmcnt = _separate("dscnt", _GFX12), _separate("kmcnt", _GFX12)
s_wait_asynccnt, s_wait_tensorcnt = _separate("asynccnt", ("gfx1250",)), _separate("tensorcnt", ("gfx1250",))


def s_barrier() -> None:
    """The bare instruction: it orders execution, not memory.  ``fx.barrier()`` has the fences too."""
    Builder.current().barrier(False)


def s_setprio(priority: int) -> None:
    """Priority of the wave, 0 to 3."""
    _call("s.setprio", count_of(priority, "the priority of s_setprio", 0, 3), bits=16)


def s_sleep(count: int) -> None:
    """Sleeps about 64 cycles times ``count``, 0 to 127."""
    _call("s.sleep", count_of(count, "the count of s_sleep", 0, 127))


def s_nop(count: int = 0) -> None:
    """Waits ``count + 1`` cycles, 0 to 15."""
    _call("s.nop", count_of(count, "the count of s_nop", 0, 15), bits=16)


def iglp_opt(strategy: int) -> None:
    """Asks LLVM for one of its instruction orders for matrix loops, 0 to 3."""
    _call("iglp.opt", count_of(strategy, "the strategy of iglp_opt", 0, 3))


# --- scheduling ----------------------------------------------------------------------------------

#: Kinds of instructions in scheduling masks.
MASKS = {
    "alu": 1, "valu": 2, "salu": 4, "mfma": 8, "vmem": 16, "vmem_read": 32, "vmem_write": 64, "ds": 128,
    "ds_read": 256, "ds_write": 512, "trans": 1024,
}  # fmt: skip

_ALL = 2 * MASKS["trans"] - 1


def sched_barrier(mask: int = 0) -> None:
    """Only instructions of the kinds in the mask move across this place; 0 lets none."""
    _call("sched.barrier", count_of(mask, "the mask of sched_barrier", 0, _ALL))


def sched_group_barrier(mask: int, size: int, group_id: int = 0) -> None:
    """Asks for ``size`` instructions of the kinds in the mask here; groups of one id form a pattern."""
    parts = [("mask", mask, _ALL), ("size", size, None), ("group_id", group_id, None)]
    _call("sched.group.barrier", *[count_of(x, f"{name} of sched_group_barrier", 0, top) for name, x, top in parts])


def sched_mfma(n: int) -> None:
    """``n`` matrix instructions here."""
    sched_group_barrier(MASKS["mfma"], n)


def sched_vmem(n: int) -> None:
    """``n`` loads from memory here."""
    sched_group_barrier(MASKS["vmem_read"], n)


def sched_dsrd(n: int) -> None:
    """``n`` reads of LDS here."""
    sched_group_barrier(MASKS["ds_read"], n)


def sched_dswr(n: int) -> None:
    """``n`` writes of LDS here."""
    sched_group_barrier(MASKS["ds_write"], n)
