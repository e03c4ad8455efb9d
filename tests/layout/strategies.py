"""Random static layouts for the property tests, and evaluation written apart from the library."""

from __future__ import annotations

from hypothesis import strategies as st

from flyllvm.layout import Layout, Tile

EXTENTS = st.sampled_from([1, 2, 3, 4, 6, 8])
STRIDES = st.sampled_from([0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32])


def flat(t):
    """Leaves of an int tuple."""
    return [x for m in t for x in flat(m)] if isinstance(t, tuple) else [t]


def count(t):
    """Product of the leaves."""
    n = 1
    for x in flat(t):
        n *= x
    return n


def value(layout, i):
    """The layout at an integer coordinate, by the definition: digits column-major, the last one without a modulo."""
    shapes, strides = flat(layout.shape), flat(layout.stride)
    total = 0
    for s, d in zip(shapes[:-1], strides[:-1], strict=True):
        total += i % s * d
        i //= s
    return total + i * strides[-1]


def image(layout):
    """All values in column-major order."""
    return [value(layout, i) for i in range(count(layout.shape))]


def nested(flat_leaves, draw):
    """A random nesting of a list of leaves, the same for shape and stride (pairs)."""
    items = list(flat_leaves)
    if len(items) > 1 and draw(st.booleans()):
        k = draw(st.integers(1, len(items) - 1))
        inner = nested(items[:k], draw)
        return [inner, *items[k:]] if draw(st.booleans()) else [*items[:k], nested(items[k:], draw)]
    return items


def _split(tree, part):
    if isinstance(tree, list):
        return tuple(_split(t, part) for t in tree)
    return tree[part]


@st.composite
def layouts(draw, max_modes=4):
    """Any static layout: also overlapping, also with strides 0."""
    n = draw(st.integers(1, max_modes))
    pairs = [(draw(EXTENTS), draw(STRIDES)) for _ in range(n)]
    if n == 1 and draw(st.booleans()):
        return Layout(*pairs[0])
    tree = nested(pairs, draw)
    return Layout(_split(tree, 0), _split(tree, 1))


@st.composite
def compact_layouts(draw, max_modes=4):
    """A bijection onto 0..size-1 with its modes in any order."""
    n = draw(st.integers(1, max_modes))
    extents = [draw(EXTENTS) for _ in range(n)]
    order = draw(st.permutations(range(n)))
    strides, span = [0] * n, 1
    for i in order:
        strides[i] = span
        span *= extents[i]
    if n == 1:
        return Layout(extents[0], strides[0])
    tree = nested(list(zip(extents, strides, strict=True)), draw)
    return Layout(_split(tree, 0), _split(tree, 1))


@st.composite
def nesting_layouts(draw, max_modes=4):
    """An injective layout whose strides nest, with gaps."""
    base = draw(compact_layouts(max_modes))
    shapes, strides = flat(base.shape), flat(base.stride)
    order = sorted(range(len(shapes)), key=lambda i: strides[i])
    out, span = [0] * len(shapes), 1
    for i in order:
        span *= draw(st.sampled_from([1, 1, 2, 3]))
        out[i] = span
        span *= shapes[i]
    return Layout(tuple(shapes), tuple(out)) if len(shapes) > 1 else Layout(shapes[0], out[0])


@st.composite
def tiles(draw, max_modes=3):
    """A tile of ints, wildcards and layouts."""
    entries = []
    for _ in range(draw(st.integers(1, max_modes))):
        kind = draw(st.integers(0, 2))
        entries.append(draw(EXTENTS) if kind == 0 else None if kind == 1 else draw(layouts(2)))
    return Tile(*entries)
