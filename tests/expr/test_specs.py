"""Argument specifications: their text, what they declare, and what their leaves promise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import FlyError
from flyllvm.expr import PointerSpec, ScalarSpec, TensorSpec, parse_spec
from flyllvm.target import Target

GFX942 = Target.parse("gfx942")

TEXTS = {
    "f16[?,128]:(?,1){div=8,align=16}": "f16[?,128]:(?,1){div=8,align=16}",
    "f16[?,?{div=8}]": "f16[?,?{div=8}]:(?,1)",
    "f32[4,8]": "f32[4,8]:(8,1)",
    "f32[?]": "f32[?]:(1)",
    "f32[?]:(1){align=16}": "f32[?]:(1){align=16}",
    "i8[2,(3,4)]:(1,(2,6))": "i8[2,(3,4)]:(1,(2,6))",
    "bf16[?,?,4]:(?,?,?)": "bf16[?,?,4]:(?,?,?)",
    "f8E4M3FN[16]": "f8E4M3FN[16]:(1)",
    "u32": "u32",
    "i64": "i64",
    "ptr<f16>{align=16}": "ptr<f16>{align=16}",
    "ptr<f32>": "ptr<f32>{align=4}",
}


@pytest.mark.parametrize(("text", "shown"), TEXTS.items())
def test_a_text_reads_and_prints(text: str, shown: str) -> None:
    spec = parse_spec(text)
    assert str(spec) == shown
    assert str(parse_spec(shown)) == shown


leaf = st.one_of(st.none(), st.integers(0, 1 << 20), st.integers(2, 64).map(lambda d: fx.Dyn(divisibility=d)))
tree = st.recursive(leaf, lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=6)


def like(x: Any, draw: Any) -> Any:
    return tuple(like(v, draw) for v in x) if isinstance(x, tuple) else draw(leaf)


@given(st.data())
def test_every_specification_reads_back_from_its_text(data: st.DataObject) -> None:
    shape = data.draw(st.lists(tree, min_size=1, max_size=3).map(tuple))
    stride = like(shape, data.draw)
    align, divisibility = data.draw(st.sampled_from([2, 8, 16])), data.draw(st.sampled_from([1, 2, 8]))
    spec = TensorSpec(fx.Float16, shape, stride, align=align, divisibility=divisibility)
    assert str(parse_spec(str(spec))) == str(spec)


def declared(*specs: Any) -> Any:
    """The kernel of a function with these arguments."""

    names = ", ".join(f"a{i}" for i in range(len(specs)))
    namespace: dict[str, Any] = {}
    exec(f"def body({names}):\n    pass", namespace)
    return flyc.kernel(namespace["body"]).trace(specs, GFX942)


def test_a_tensor_is_a_pointer_and_its_run_time_leaves_in_order() -> None:
    kernel = declared("f16[?,128,?]:(?,1,?)", "f32[4]", "i32")
    assert [(a.name, a.type.text.partition("<")[0]) for a in kernel.args] == [
        ("a0", "!fly.ptr"), ("a0_d0", "i32"), ("a0_d1", "i32"), ("a0_d2", "i32"), ("a0_d3", "i32"),
        ("a1", "!fly.ptr"), ("a2", "i32"),
    ]  # fmt: skip


def test_leaves_are_known_to_be_extents_and_multiples() -> None:
    kernel = declared("f16[?{div=4},?]:(?,1){div=8}")
    _, first, second, stride = kernel.args
    assert [v.divisibility for v in (first, second, stride)] == [4, 8, 8]
    assert {v.range for v in (first, second, stride)} == {(0, (1 << 31) - 1)}


def test_the_pointer_carries_the_alignment() -> None:
    natural, wide = declared("f16[?]", "f16[?]:(1){align=16}").args[::2]
    assert (natural.type.align, wide.type.align) == (2, 16)


def test_a_scalar_is_a_number_and_a_pointer_a_pointer() -> None:
    def body(n: Any, x: Any, p: Any) -> None:
        assert type(n) is fx.Uint32 and type(x) is fx.Float64 and isinstance(p, fx.Pointer)
        assert p.element_type is fx.Float16 and p.alignment == 8

    flyc.kernel(body).trace([ScalarSpec("u32"), fx.Float64, PointerSpec("f16", 8)], GFX942)


@pytest.mark.parametrize(
    ("make", "fix"),
    [
        (lambda: TensorSpec("f99", (4,)), "use one of: "),
        (lambda: TensorSpec(int, (4,)), "fx.Float16 or 'f16'"),
        (lambda: TensorSpec("f32", (4, -1)), "non-negative int"),
        (lambda: TensorSpec("f32", (4, 2.5)), "non-negative int"),
        (lambda: TensorSpec("f32", (4, True)), "non-negative int"),
        (lambda: TensorSpec("f32", (4, 4), (1,)), "one stride per extent"),
        (lambda: TensorSpec("f32", (4, (2, 2))), "give the strides"),
        (lambda: TensorSpec("f32", (4,), align=0), "power of two"),
        (lambda: TensorSpec("f32", (None,), divisibility=0), "positive number"),
        (lambda: TensorSpec("f32", (fx.Dyn(width=64),)), "run-time leaves are 32-bit"),
        (lambda: ScalarSpec("i1"), "pass an Int32 or Uint8 instead"),
        (lambda: parse_spec("f32[4,"), "f16"),
        (lambda: parse_spec("f32[(4,4]"), "balance the parentheses"),
        (lambda: parse_spec("f32[4]x"), "f16"),
        (lambda: parse_spec("f32[four]"), "use numbers and '?'"),
        (lambda: parse_spec("f32[?{div=x}]"), "use numbers and '?'"),
        (lambda: parse_spec("f32[4]{align=big}"), "marks are div=N and align=N"),
        (lambda: parse_spec(""), "use one of: "),
    ],
)  # fmt: skip
def test_a_malformed_specification_says_how_to_write_it(make: Any, fix: str) -> None:
    with pytest.raises(FlyError) as caught:
        make()
    assert fix in str(caught.value)


@pytest.mark.parametrize(
    "text", ["f32[99999999999999999999999]", "f32[4]:(9223372036854775808)", "f32[8,4294967296,4294967296]"]
)
def test_a_static_extent_or_stride_past_64_bits_is_refused(text: str) -> None:
    with pytest.raises(FlyError, match=r"past the limit of 2\*\*63 - 1 elements\n  fix: use a smaller number"):
        parse_spec(text)
    assert str(parse_spec("i8[9223372036854775807]")) == "i8[9223372036854775807]:(1)"


@pytest.mark.parametrize("text", ["f32[{}]", "f32[?{{div={}}}]", "f32[4]{{align={}}}"])
def test_a_number_of_thousands_of_digits_is_refused_shortly(text: str) -> None:
    with pytest.raises(FlyError, match=r"a number of 5000 digits\n  fix: the limit is 2\*\*63 - 1") as caught:
        parse_spec(text.format("9" * 5000))
    assert len(str(caught.value)) < 300
