"""The order in which a gemm visits its atom calls."""

from __future__ import annotations

from ..layout import Layout, cosize, crd2idx, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..ir.core import Op

#: Names are read first letter = innermost loop.
ORDERS = ("KMN", "KNM", "MKN", "MNK", "NKM", "NMK")
DEFAULT = "NMK"
SERPENTINE = "_Serpentine"


def gemm_steps(m: int, n: int, k: int, op: Op) -> Iterator[tuple[int, int, int]]:
    """(m, n, k) of every atom call, in order.

    Raises:
        VerifyError: Unknown order, a traversal layout that does not visit every step once, or both.
    """
    layout = op.attrs.get("traversal_layout")
    if layout is not None:
        if op.attrs.get("traversal_order") is not None:
            raise op.fail("a gemm with a traversal order and a traversal layout", "give one of them")
        yield from _by_layout(layout, m, n, k, op)
        return
    name = str(op.attrs.get("traversal_order") or DEFAULT)
    order, serpentine = (name[: -len(SERPENTINE)], True) if name.endswith(SERPENTINE) else (name, False)
    if order not in ORDERS:
        legal = ", ".join(ORDERS)
        raise op.fail(f"unknown traversal order {name!r}", f"use {legal}, each also with {SERPENTINE}")
    bounds = {"M": m, "N": n, "K": k}
    inner, middle, outer = tuple(order)
    b1 = bounds[middle]
    for i0 in range(bounds[outer]):
        for step, i1 in enumerate(_run(b1, serpentine and i0 % 2 == 1), i0 * b1):
            for i2 in _run(bounds[inner], serpentine and step % 2 == 1):
                at = {outer: i0, middle: i1, inner: i2}
                yield at["M"], at["N"], at["K"]


def _run(bound: int, backwards: bool) -> range:
    return range(bound - 1, -1, -1) if backwards else range(bound)


def _by_layout(layout: Layout, m: int, n: int, k: int, op: Op) -> Iterator[tuple[int, int, int]]:
    total = m * n * k
    count = size(layout)
    visited = [crd2idx(i, layout) for i in range(int(count))] if isinstance(count, int) else []
    if cosize(layout) != total or sorted(visited) != list(range(total)):
        raise op.fail(
            f"the traversal layout {layout} does not visit each of {total} steps once",
            f"use a layout whose values are 0 to {total - 1}, each once",
        )
    for at in visited:
        yield at % m, at // m % n, at // (m * n)
