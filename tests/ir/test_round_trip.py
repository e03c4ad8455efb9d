"""Printing and parsing are inverse, for every operation."""

from __future__ import annotations

from pathlib import Path

import pytest

from flyllvm.ir.core import OPS, Kernel, Module
from flyllvm.ir.parser import parse_kernel, parse_module
from flyllvm.ir.printer import print_kernel, print_module
from flyllvm.ir.verifier import verify
from tests.ir.compare import differences
from tests.ir.samples import GFX942, SAMPLES

GOLDEN = Path(__file__).parent / "golden"


def test_the_samples_hold_every_operation() -> None:
    used = {op.name for build in SAMPLES.values() for op in build().walk()}
    assert used == set(OPS)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_well_formed(name: str) -> None:
    kernel = SAMPLES[name]()
    verify(kernel, kernel.attrs["stage"], GFX942)


@pytest.mark.parametrize("locations", [False, True])
@pytest.mark.parametrize("name", SAMPLES)
def test_print_of_parse_of_print_is_print(name: str, locations: bool) -> None:
    kernel = SAMPLES[name]()
    text = print_kernel(kernel, locations=locations)
    again = parse_kernel(text, "sample.fly")
    assert print_kernel(again, locations=locations) == text
    assert differences(kernel, again, locations=locations) == []
    verify(again, again.attrs["stage"], GFX942)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_generic_form_says_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = SAMPLES[name]()
    monkeypatch.setattr("flyllvm.ir.printer.SPECIAL", {})
    monkeypatch.setattr("flyllvm.ir.printer.Printer.templated", lambda self, op, form: None)
    text = print_kernel(kernel)
    assert '"gpu.return"() : () -> ()' in text
    assert differences(kernel, parse_kernel(text), locations=False, facts=False) == []


def test_a_module_round_trips_with_all_its_kernels() -> None:
    module = Module([build() for build in SAMPLES.values()], {"note": ("a", 1.5, True, {"b": -1}), "empty": ()})
    text = print_module(module, name="my kernels")
    again = parse_module(text)
    assert print_module(again, name="my kernels") == text
    assert again.attrs == module.attrs
    assert [k.name for k in again.kernels] == list(SAMPLES)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_text_of_a_sample_is_the_golden_one(name: str, request: pytest.FixtureRequest) -> None:
    text, path = print_kernel(SAMPLES[name]()), GOLDEN / f"{name}.fly"
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "run pytest with --update-golden if the change is meant"


def test_kernels_without_a_module_are_a_module() -> None:
    texts = [print_kernel(build()) for build in SAMPLES.values()]
    assert [k.name for k in parse_module("\n".join(texts)).kernels] == list(SAMPLES)


def test_parsed_operations_carry_their_own_line() -> None:
    kernel = parse_kernel("gpu.func @k() kernel {\n  %0 = gpu.thread_id x\n  gpu.return\n}\n", "k.fly")
    assert [str(op.loc) for op in kernel.walk()] == ["k.fly:2", "k.fly:3"]
    assert str(kernel.loc) == "k.fly:1"
    frame = kernel.body.ops[0].loc.frames[0]
    assert (frame.func, frame.func_line, frame.col) == ("k", 1, 8)


def test_a_location_in_the_text_wins() -> None:
    text = 'gpu.func @k() kernel { gpu.return loc(callsite("f:3"("a.py":4:1) at "b.py":9:0)) } loc(unknown)'
    kernel = parse_kernel(text)
    assert kernel.body.ops[0].loc.key() == (("a.py", 4, 1, "f", 3), ("b.py", 9, 0, "", 0))
    assert str(kernel.loc) == "<unknown location>"
    assert "callsite" in print_kernel(kernel, locations=True)


def test_an_if_without_results_may_leave_out_else_and_yield() -> None:
    kernel = parse_kernel("gpu.func @k(%c: i1) kernel { scf.if %c { gpu.barrier } gpu.return }")
    verify(kernel, "fly")
    assert "else" not in print_kernel(kernel)
    assert [op.name for op in kernel.walk()] == ["scf.if", "gpu.barrier", "scf.yield", "scf.yield", "gpu.return"]


def _kernel_with(*names: str) -> Kernel:
    from flyllvm.ir import types as t

    kernel = Kernel("k")
    for name in names:
        kernel.add_arg(t.I32, name)
    return kernel


def test_equal_names_are_made_unique_and_strange_ones_legal() -> None:
    text = print_kernel(_kernel_with("x", "x", "x_1", "my var", "3d", "", "ü", "x"))
    assert text.startswith(
        'gpu.func @k(%x: i32, %x_1: i32 {fly.name = "x"}, %x_1_1: i32 {fly.name = "x_1"}, '
        '%my_var: i32 {fly.name = "my var"}, %_3d: i32 {fly.name = "3d"}, %0: i32 {fly.name = ""}, '
        '%_: i32 {fly.name = "ü"}, %x_2: i32 {fly.name = "x"}) kernel'
    )
    again = parse_kernel(text)
    assert print_kernel(again) == text
    assert [a["name"] for a in again.arg_attrs] == ["x", "x", "x_1", "my var", "3d", "", "ü", "x"]


def test_an_argument_keeps_its_divisibility() -> None:
    kernel = _kernel_with("n")
    kernel.args[0].divisibility = 8
    text = print_kernel(kernel)
    assert "%n: i32 {fly.divisibility = 8 : i32}" in text
    assert parse_kernel(text).args[0].divisibility == 8


def test_a_malformed_operation_prints_in_the_generic_form() -> None:
    from flyllvm.ir.printer import print_op

    kernel = _kernel_with("x")
    add = OPS["arith.addi"]([kernel.args[0]], (), {"overflow": 3})
    assert print_op(add) == '"arith.addi"(%x) {overflow = 3 : i32} : (i32) -> ()'


def test_an_attribute_without_text_is_refused_by_name() -> None:
    from flyllvm.errors import VerifyError

    kernel = _kernel_with()
    kernel.attrs["hint"] = object()
    with pytest.raises(VerifyError, match=r"an attribute of type object has no text(.|\n)*fix: use numbers, text"):
        print_kernel(kernel)
