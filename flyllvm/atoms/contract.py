"""What the layouts of an atom must satisfy.

Sizes are checked when a row is defined, coverage (which walks all elements) when the row is first used, and for every
row in the tests.  No structural check can see rows and columns exchanged: that is what probes in the simulator are for.
"""

from __future__ import annotations

from ..errors import AtomError
from ..layout import flatten, recast_layout, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..layout import Layout


def static_size(x: object, what: str) -> int:
    """The size of a static layout, shape or int tuple.

    Raises:
        AtomError: It is known at run time only.
    """
    found = size(x)
    if not isinstance(found, int):
        raise AtomError(f"{what}: {x} has a size known at run time only", fix="layouts of atoms are static")
    return found


# Tables, as `functools` is dear to import.
_SIZES: dict[Layout, tuple[int, int]] = {}
_FAULTS: dict[tuple[Layout, int, int], str | None] = {}


def _sizes(layout: Layout) -> tuple[int, int]:
    """Threads and values of a (thread, value) layout."""
    found = _SIZES.get(layout)
    if found is None:
        thr, val = (static_size(mode, str(layout)) for mode in layout.shape)
        found = _SIZES[layout] = thr, val
    return found


def check_thr_val(what: str, layout: Layout, threads: int, total: int) -> int:
    """Checks the sizes of a (thread, value) layout and returns the values per thread.

    Args:
        what: The layout for messages: atom and operand.
        layout: ``((thr...),(val...))`` into the operand's elements.
        threads: Lanes that cooperate.
        total: Elements of the operand times the declared replication.

    Raises:
        AtomError: The layout is no 2-tuple, or its sizes contradict the instruction.
    """
    if not isinstance(layout.shape, tuple) or len(layout.shape) != 2:
        raise AtomError(f"{what}: {layout} has {layout.shape} modes on top", fix="write ((thr...),(val...)):(...)")
    thr, val = _sizes(layout)
    if thr != threads:
        raise AtomError(f"{what}: {layout} has {thr} threads", fix=f"the instruction has {threads} cooperating lanes")
    if thr * val != total:
        raise AtomError(
            f"{what}: {layout} places {thr} x {val} = {thr * val} values",
            fix=f"the operand has {total} (elements times declared replication)",
        )
    return val


def indices(layout: Layout) -> list[int]:
    """Where a static layout of integer strides maps its coordinates, in column-major order."""
    found = [0]
    for extent, stride in zip(flatten(layout.shape), flatten(layout.stride), strict=True):
        found = [base + i * stride for i in range(extent) for base in found]
    return found


def coverage_fault(layout: Layout, elements: int, replication: int) -> str | None:
    """What is wrong with the coverage of a layout, or ``None``: each of ``elements`` is hit ``replication`` times."""
    key = layout, elements, replication
    if key not in _FAULTS:
        _FAULTS[key] = _coverage_fault(layout, elements, replication)
    return _FAULTS[key]


def _coverage_fault(layout: Layout, elements: int, replication: int) -> str | None:
    hits = [0] * elements
    for at in indices(layout):
        if not 0 <= at < elements:
            return f"reaches element {at} of {elements}"
        hits[at] += 1
    for at, count in enumerate(hits):
        if count != replication:
            return f"holds element {at} {count} times"
    return None


def check_coverage(what: str, layout: Layout, elements: int, replication: int = 1) -> None:
    """Checks that a layout hits every element, each ``replication`` times, and nothing else.

    Raises:
        AtomError: It does not; the message names an element.
    """
    if fault := coverage_fault(layout, elements, replication):
        raise AtomError(
            f"{what}: {layout} {fault}",
            fix=f"each element is held {replication} time(s); declare the replication where hardware duplicates",
        )


def check_register(what: str, values: int, bits: int, register_bits: int) -> None:
    """Checks that the values of one lane fill the register vector that is emitted.

    Units:
        bits, register_bits: bits of one value and of the register vector.

    Raises:
        AtomError: They do not.
    """
    if values * bits != register_bits:
        raise AtomError(
            f"{what}: {values} values of {bits} bits are {values * bits} bits in a lane",
            fix=f"the instruction takes {register_bits} bits",
        )


def value_layout(what: str, bit_layout: Layout, val_bits: int) -> Layout:
    """A (thread, bit) layout seen as (thread, value) with values of ``val_bits`` bits.

    Raises:
        AtomError: The bits of a thread are no whole number of values.
        LayoutError: The bits of one value are not contiguous.
    """
    bits = static_size(bit_layout.shape[1], what)
    if val_bits < 1 or bits % val_bits:
        legal = ", ".join(str(n) for n in (1, 4, 8, 16, 32, 64, 96, 128) if bits % n == 0)
        raise AtomError(
            f"{what}: {bits} bits of a thread are no whole number of values of {val_bits} bits",
            fix=f"element widths that divide: {legal}",
        )
    viewed: Layout = recast_layout(val_bits, 1, bit_layout)
    return viewed
