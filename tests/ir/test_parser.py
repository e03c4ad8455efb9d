"""Malformed text: each error names the place, what stands there, and what to write."""

from __future__ import annotations

import pytest

import flyllvm.atoms
from flyllvm.errors import FlyError, ParseError
from flyllvm.ir.parser import parse_kernel, parse_module

assert flyllvm.atoms

ARGS = "%i: i32, %x: f32, %c: i1, %v: vector<4xf32>, %p: !fly.ptr<f16, global>"


def body_error(line: str) -> str:
    """The error that a line gives as line 2 of a kernel with arguments of several types."""
    with pytest.raises(ParseError) as info:
        parse_module(f"gpu.func @k({ARGS}) kernel {{\n{line}\n}}\n", "k.fly")
    return str(info.value)


def text_error(text: str) -> str:
    with pytest.raises(ParseError) as info:
        parse_module(text, "k.fly")
    return str(info.value)


BODY_ERRORS = [
    # operations and values
    ("%0 = arith.addy %i, %i : i32", "2:6: unknown operation 'arith.addy'", "known operations: arith.addi"),
    ('"arith.addy"() : () -> ()', "2:1: unknown operation 'arith.addy'", "known operations: arith.addi"),
    ("%0 = arith.addi %i, %j : i32", "2:21: %j is not defined here", "known names like it: %"),
    ("5", "2:1: expected an operation such as arith.addi, found '5'", ""),
    (
        "%0 = arith.addi %i : i32",
        "2:20: expected ',' of arith.addi, found ':'",
        "write arith.addi %a, %b [overflow<...>]",
    ),
    ("%0 = arith.addi %i, 5 : i32", "2:21: expected a value such as %0, found '5'", ""),
    ("%0 = arith.addi %i, %i : f32", "2:26: operand 0 has type i32, the text says f32", "write the type it has"),
    ("%0, = arith.addi %i, %i : i32", "2:5: expected a result name, found '='", ""),
    ("%0 arith.addi %i, %i : i32", "2:4: expected '=', found 'arith.addi'", ""),
    ("%i = arith.addi %i, %i : i32", "2:1: %i is defined already", "give each value its own name"),
    ("%0:2 = arith.addi %i, %i : i32", "2:1: arith.addi has 1 results, 2 are named", "name each result"),
    ("%0:0 = arith.addi %i, %i : i32", "2:1: 0 results", "write how many results the name stands for"),
    ("%0 = gpu.barrier", "2:1: gpu.barrier has 0 results, 1 are named", "name each result"),
    ("gpu.barrier {fense = false}", "2:1: gpu.barrier has no attribute 'fense'", "its attributes: fence"),
    ("gpu.barrier {fence, fence}", "2:21: attribute 'fence' is given twice", "write it once"),
    ("gpu.barrier {fence = <}", "2:22: expected an attribute value, found '<'", "write e.g. 1 : i32"),
    ("gpu.barrier {fence = 1 : f}", "2:26: 'f' is no type", "write e.g. i32, vector<4xf32>"),
    ("gpu.barrier {fence = 1.5 : i32}", "2:22: 1.5 is no number of type i32", "an integer or a float type that fits"),
    (
        "gpu.barrier {fence = 0x1FFFFFFFF : f32}",
        "2:22: 0x1FFFFFFFF are no bits of an f32",
        "give f16, bf16, f32 or f64",
    ),
    ("gpu.barrier {fence = #fly.tyle<[4]>}", "2:22: unknown attribute #fly.tyle", "known: #fly.tile"),
    ('gpu.barrier {fence = #fly.target<"gfx942">}', "2:22: cannot read #fly.target", 'write #fly.target<"gfx942", 64>'),
    ('gpu.barrier {fence = #fly.target<"gfx1", 64>}', "2:22: unknown target 'gfx1'", "use one of: gfx90a"),
    # templates
    ("%0 = arith.cmpi %i, %i : i32", "2:17: expected a predicate, found '%i'", "write arith.cmpi PREDICATE, %a, %b"),
    ("%0 = arith.select %v, %x, %x : f32", "2:6: the condition has type vector<4xf32>", "write its type before"),
    ("%0 = vector.extract %v[%x", "3:1: expected ']' of vector.extract, found '}'", "write vector.extract %a[N]"),
    (
        "%0 = vector.shuffle %v, %v [] : vector<4xf32>, vector<4xf32>",
        "2:6: vector.shuffle: the operands give no",
        "N, ...",
    ),
    (
        '%0 = llvm.call_intrinsic "llvm.a"(%i) (i32) -> i32',
        "2:39: expected ':', found '('",
        "write llvm.call_intrinsic",
    ),
    ("fly.ptr.store(%x, %p) : (f32) -> ()", "2:23: 1 types for 2 operands", "write one type for each"),
    (
        "fly.ptr.store(%x, %p) : (f16, !fly.ptr<f16, global>) -> ()",
        "operand 0 has type f32, the text says f16",
        "the type",
    ),
    ("scf.yield %x, %i : f32", "2:18: 1 types for 2 values", "write one type for each"),
    ("llvm.fence syncscope(agent) release", "2:22: expected a scope in quotes, found 'agent'", ""),
    # constants
    ("%0 = arith.constant 5", "3:1: expected ':' and the type of the constant, found '}'", "arith.constant 5 : i32"),
    ("%0 = arith.constant 1.5 : i32", "2:21: 1.5 is no integer for i32", "or use a float type"),
    ("%0 = arith.constant 5 : !fly.ptr<f16, global>", "2:6: a constant of type !fly.ptr", "constants are numbers"),
    ("%0 = arith.constant {value = 1} 5 : i32", "2:6: the value is given twice", "after the attributes only"),
    ("%0 = arith.constant dense<[1, %i]> : vector<2xi32>", "2:31: expected a number, found '%i'", ""),
    # control flow
    ("scf.if %i { }", "2:1: the condition of scf.if has type i32", "the condition is an i1"),
    ("%0 = scf.if %c -> (f32) { scf.yield %x : f32 }", "3:1: expected 'else': the if has results", "in both branches"),
    ("scf.for %k = %i to %i { }", "2:23: expected 'step', found '{'", "write scf.for %i = %low to %high step"),
    (
        "scf.for %k = %i to %i step %x : i32 { }",
        "2:1: bound 2 has type f32, the text says i32",
        "write the type it has",
    ),
    (
        "scf.for %k = %i to %i step %i iter_args(%a = %x) -> (i32) : i32 { }",
        "carried value 0 has type f32",
        "the type it",
    ),
    ("scf.for %i = %i to %i step %i : i32 { }", "2:9: %i is defined already", "its own name"),
    (
        "scf.for %k = %i to %i step %i : i32 {\n^bb0(%a: i32):\n}",
        "3:1: this region has its arguments",
        "leave the label",
    ),
    ("scf.while (%a = %i) { } do { }", "2:21: expected ':', found '{'", "write scf.while (%a = %x)"),
    ("scf.while : () -> () { } { }", "2:26: expected 'do', found '{'", "write scf.while"),
    # types
    ("%0 = ub.poison : i0", "2:18: 'i0' is no type", "write e.g. i32"),
    ("%0 = ub.poison : i99999", "2:18: i99999 is wider than 4096 bits", "use a narrower integer"),
    ("%0 = ub.poison : vector<0xf32>", "2:18: vector<0xf32> has 0 elements", "use 1 to 65536"),
    ("%0 = ub.poison : vector<4xf8E4M3>", "2:18: unknown element type 'f8E4M3'", "known types: f8E4M3FN"),
    ("%0 = ub.poison : !fly.pointer<f16>", "2:18: unknown type !fly.pointer", "known types: fly"),
    ("%0 = ub.poison : !fly.ptr<f16>", "2:18: !fly.ptr<f16> has 1 parameters", "write !fly.ptr<f16, global>"),
    ("%0 = ub.poison : !fly.ptr<f16, lds>", "2:18: unknown address space 'lds'", "use one of: generic, global, shared"),
    ("%0 = ub.poison : !fly.ptr<f16, shared, align<3>>", "2:18: alignment of 3 bytes", "use a power of two, in bytes"),
    ("%0 = ub.poison : !fly.ptr<f16, shared, 16>", "2:18: cannot read '16'", "write element, space, align<BYTES>"),
    ("%0 = ub.poison : !fly.memref<f16, shared>", "2:18: !fly.memref<f16, shared> has 2 parameters", "(4,8):(1,4)"),
    ("%0 = ub.poison : !fly.memref<f16, shared, 4>", "2:18: '4' is no Layout or ComposedLayout", "write e.g. (4,8)"),
    ("%0 = ub.poison : !fly.memref<f16, shared, (4,8):(1)>", "2:18:", "nest alike"),
    ("%0 = ub.poison : !fly.int_tuple<4:1>", "2:18: '4:1' is no int tuple", "write e.g. (2,(3,?))"),
    ("%0 = ub.poison : !fly.mma_atom", "2:18: '!fly.mma_atom' has no parameter", "write !fly.mma_atom<OPERATION>"),
    ("%0 = ub.poison : !fly.mma_atom<mfma>", "2:18: 'mfma' is no atom operation", "write e.g. !fly.universal_copy<32>"),
    ("%0 = ub.poison : !fly.mma_atom<!fly.mfma<4>>", "2:18: unknown atom operation !fly.mfma", "known operations: "),
    ("%0 = ub.poison : !fly.copy_atom<!fly.universal_copy<32>, x>", "2:18: 'x' is no width in bits", "in bits"),
    ("%0 = ub.poison : !fly.tiled_copy<i32, 4:1, [4]>", "2:18: 'i32' is no copy atom", "write !fly.copy_atom<"),
    ("%0 = ub.poison : !fly.tiled_mma<i32, 4:1, [4]>", "2:18: 'i32' is no mma atom", "write !fly.mma_atom<"),
    # tokens
    ("%0 = ub.poison : !fly.ptr<f16, global", "2:26: a bracket of this type is not closed", "close it with '>'"),
    ("%0 = ub.poison : !fly.ptr<f16, global)", "2:38: ')' closes no bracket of this type", "balance the brackets"),
    ("%0 = ub.poison : !fly.int_tuple<" + "(" * 80, "brackets nest deeper than 64 in a type", "write a flatter layout"),
    (
        "%0 = ub.poison : !fly.int_tuple<" + "9" * 99 + ">",
        "a number of more digits than any type holds",
        "use at most 60",
    ),
    ("%0 = arith.constant " + "9" * 5000 + " : i32", "a number of more digits than any type holds", "use at most 60"),
    ("gpu.barrier ;", "2:13: no token starts with ';'", "see the grammar in docs/ir.md"),
    ('gpu.printf "open', "2:12: a quoted text does not end on its line", 'close it with "'),
    # locations
    ("gpu.barrier loc(here)", "2:17: expected a file such as \"kernel.py\", or unknown, found 'here'", ""),
    ('gpu.barrier loc("a.py":x:0)', "2:24: expected a line, found 'x'", ""),
    (
        "gpu.barrier loc(" + 'callsite("a":1:1 at ' * 80,
        "more than 64 call sites in one location",
        "keep the inner ones",
    ),
]


@pytest.mark.parametrize(("line", "what", "fix"), BODY_ERRORS, ids=range(len(BODY_ERRORS)))
def test_a_malformed_line_is_refused_with_place_and_fix(line: str, what: str, fix: str) -> None:
    said = body_error(line)
    assert said.startswith("k.fly:")
    assert what in said
    assert fix in said


TEXT_ERRORS = [
    ("func @k()", "1:1: expected 'gpu.func', found 'func'", "a module holds kernels: gpu.func @name"),
    ("gpu.func k()", "1:10: expected a symbol such as @kernel, found 'k'", ""),
    ("gpu.func @k() { }", "1:15: expected 'kernel', found '{'", "write gpu.func @name(...) kernel"),
    ("gpu.func @k(%a i32)", "1:16: expected ':', found 'i32'", ""),
    ("gpu.func @k(a: i32)", "1:13: expected an argument such as %a, found 'a'", ""),
    ("gpu.func @k(%a: i32 {align = 4 : i32})", "1:13: argument attribute 'align'", "start with 'fly.'"),
    ("gpu.func @k(%a: i32 {fly.divisibility = 0})", "1:13: fly.divisibility is 0", "give a positive integer"),
    ("gpu.func @k(%a: i32 {fly.name = 1})", "1:13: fly.name is 1", "give a quoted text"),
    ("gpu.func @k(%a: i32, %a: i32)", "1:22: %a is defined already", "its own name"),
    ("gpu.func @k() kernel {", "1:23: expected an operation such as arith.addi, found the end of the text", ""),
    ("gpu.module @m {", "1:16: expected '}', found the end of the text", ""),
    ("gpu.module @m { } }", "1:19: expected the end of the text, found '}'", ""),
    ("gpu.func @k() kernel { } gpu.func @k() kernel { }", "1:26: kernel @k is defined twice", "its own name"),
    ("gpu.func @k(%c: i1) kernel {" + "scf.if %c {" * 200, "the text nests deeper than 100 levels", "write it flatter"),
    ("gpu.module @m attributes {a = " + "[" * 200, "the text nests deeper than 100 levels", "write it flatter"),
    ("gpu.module @m attributes {a = " + "{a = " * 200, "the text nests deeper than 100 levels", "write it flatter"),
    ("gpu.func @k(%c: i1) kernel { scf.if %c { %0 = gpu.lane_id } scf.yield %0 : i32 }", "%0 is not defined", "around"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "what", "fix"), TEXT_ERRORS, ids=range(len(TEXT_ERRORS)))
def test_a_malformed_text_is_refused_with_place_and_fix(text: str, what: str, fix: str) -> None:
    said = text_error(text)
    assert said.startswith("k.fly:1:")
    assert what in said
    assert fix in said


@pytest.mark.parametrize(
    ("text", "found"),
    [("", "none"), ("gpu.module @m { }", "none"), ("gpu.func @a() kernel { } gpu.func @b() kernel { }", "@a, @b")],
)
def test_parse_kernel_wants_exactly_one(text: str, found: str) -> None:
    with pytest.raises(ParseError, match=f"expected one kernel, found {found}(.|\n)*use parse_module"):
        parse_kernel(text)


def test_an_error_of_an_atom_inside_a_type_is_a_parse_error_at_the_type() -> None:
    said = body_error("%0 = ub.poison : !fly.copy_atom<!fly.universal_copy<7>, 7>")
    assert said.startswith("k.fly:2:18: ")
    with pytest.raises(FlyError):
        parse_kernel(f"gpu.func @k({ARGS}) kernel {{ }} !")


def test_comments_and_blank_lines_do_not_matter() -> None:
    text = "// a kernel\n\ngpu.func @k(%c: i1) // arguments\n  kernel {\n\t gpu.return // end\r\n}\n//"
    assert [op.name for op in parse_kernel(text).walk()] == ["gpu.return"]


def test_attributes_of_every_kind_are_read() -> None:
    text = (
        "gpu.func @k() kernel attributes {a = 1 : i64, b = -2, c = 1.5 : f64, d = 0x3C00 : f16, "
        'e = "q\\22\\\\\\n\\41", f, '
        "g = false, h = [1 : i32, [true], []], i = array<i32: 1, 2>, j = {x = f16}, k = vector<2xi8>, "
        'l = #fly.layout<(2,3):(3,1)>, m = #fly.target<"gfx942:xnack-", 64>, "n o" = array<i32>, '
        "p = #fly.tile<[2|*]>, q = #fly.swizzle<S<1,2,3>>} { }"
    )
    attrs = parse_kernel(text).attrs
    assert (attrs["a"], attrs["b"]) == (1, -2)
    assert (attrs["c"], attrs["d"], attrs["e"]) == (1.5, 1.0, 'q"\\\nA')
    assert (attrs["f"], attrs["g"], attrs["h"]) == (True, False, (1, (True,), ()))
    assert (attrs["i"], str(attrs["j"]["x"]), str(attrs["k"])) == ((1, 2), "f16", "vector<2xi8>")
    assert (str(attrs["l"]), str(attrs["m"]), attrs["n o"]) == ("(2,3):(3,1)", "gfx942:xnack-", ())
    assert (str(attrs["p"]), str(attrs["q"])) == ("[2|*]", "S<1,2,3>")
