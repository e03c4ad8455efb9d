"""Whatever the text is, only a FlyError comes out: while parsing, verifying and printing."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, strategies as st

from flyllvm.errors import FlyError
from flyllvm.ir.core import OPS, Kernel
from flyllvm.ir.lexer import Source, tokens_of
from flyllvm.ir.parser import parse_module
from flyllvm.ir.printer import print_kernel, print_module
from flyllvm.ir.verifier import STAGES, verify
from tests.ir.samples import GFX942, SAMPLES

TEXTS = [print_kernel(build()) for build in SAMPLES.values()]
TOKENS = [t.text for text in TEXTS for t in tokens_of(Source(text, "")) if t.text]
EXTRA = ["<", ">", "(", ")", "{", "}", "[", "]", ",", "=", ":", "->", '"', "%0", "%0#1", "@", "^bb0", "-1", "0x7F",
         "1e999", "9" * 40, "nan", "dense", "array", "loc", "callsite", "!fly.ptr", "vector<", "#fly.layout<", "?", "*",
         "\\"]  # fmt: skip


def survives(text: str) -> bool:
    """Whether the text is read; everything that is read must verify or be refused, and print or be refused."""
    try:
        module = parse_module(text, "fuzz.fly")
    except FlyError as e:
        assert str(e.where).startswith("fuzz.fly:"), e
        return False
    for kernel in module.kernels:
        for stage in STAGES:
            try:
                verify(kernel, stage, GFX942)
            except FlyError as e:
                assert e.where is not None
    printed = print_module(module)
    assert print_module(parse_module(printed)) == printed
    return True


def mutate(text: str, rng: random.Random) -> str:
    """The text with a few tokens replaced, dropped, doubled or swapped."""
    tokens = [t.text for t in tokens_of(Source(text, "")) if t.text]
    for _ in range(rng.randint(1, 4)):
        i = rng.randrange(len(tokens))
        kind = rng.random()
        if kind < 0.5:
            tokens[i] = rng.choice(TOKENS if rng.random() < 0.8 else EXTRA)
        elif kind < 0.7:
            del tokens[i]
        elif kind < 0.85:
            tokens.insert(i, rng.choice(TOKENS))
        else:
            j = rng.randrange(len(tokens))
            tokens[i], tokens[j] = tokens[j], tokens[i]
        if not tokens:
            break
    return " ".join(tokens)


def cut(text: str, rng: random.Random) -> str:
    """A kernel of a few lines of the sample, so that a mutation is not hidden by an earlier one."""
    head, *lines = text.splitlines()
    return "\n".join([head, *(line for line in lines[:-1] if rng.random() < 0.9), lines[-1]])


@pytest.mark.slow
def test_mutated_kernels_never_crash(full: bool) -> None:
    rng = random.Random(1)
    read = sum(survives(mutate(rng.choice(TEXTS), rng)) for _ in range(20_000 if full else 600))
    assert read > 0


def test_kernels_with_missing_lines_never_crash() -> None:
    rng = random.Random(2)
    for _ in range(100):
        survives(cut(rng.choice(TEXTS), rng))


@given(st.text(max_size=200))
@example("gpu.func @k() kernel { } \x00")
@example("\ud800")
@example('gpu.func @"\ud800"() kernel { }')
@example("!" * 50)
@example("vector<4xf32>")
def test_any_text_is_refused_or_read(text: str) -> None:
    survives(text)


@given(st.lists(st.sampled_from(TOKENS + EXTRA * 20), max_size=40))
def test_any_sequence_of_tokens_is_refused_or_read(tokens: list[str]) -> None:
    survives(" ".join(tokens))
    survives(f"gpu.func @k(%0: i32, %x: f32, %c: i1) kernel {{ {' '.join(tokens)} }}")


VALUES = {
    "i": "i32", "l": "i64", "h": "f16", "x": "f32", "c": "i1", "v": "vector<4xf32>", "p": "!fly.ptr<f16, global>",
    "r": "!fly.ptr<f16, register>", "m": "!fly.memref<f16, register, 4:1>",
    "g": "!fly.memref<f16, global, (4,?):(1,4)>",
    "t": "!fly.int_tuple<(2,?)>", "a": "!fly.layout<4:1>", "w": "!fly.swizzle<S<1,2,3>>",
    "s": "!fly.composed_layout<S<1,2,3> o 0 o 4:1>", "k": "!fly.coord_tensor<(0,0), (4,8):(1E0,1E1)>",
    "u": "!fly.copy_atom<!fly.universal_copy<64>, 16>", "b": "!fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<64>, 16>",
    "n": "!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>",
    "q": "!fly.tiled_mma<!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>, (2,2,1):(1,2,0), [*|*|*]>",
    "o": "!fly.tiled_copy<!fly.copy_atom<!fly.universal_copy<64>, 16>, (16,4):(4,1), [4|16]>",
}  # fmt: skip
ATTRS = ["1 : i32", "-1 : i64", "0 : i32", "true", '"soffset"', '"llvm.x"', "[]", "array<i32: 1, 0, 0, 0>", "1.5 : f64",
         "[[]]", '["nsw"]', "f16", "{}", "#fly.layout<4:1>", "array<i32: 2, -1, 0, 0>", '"x"', '"slt"',
         '["a", 1, true, f16]',
         "[array<i32: 0, 1, 32>]", '#fly.target<"gfx942", 64>', "1267650600228229401496703205376 : i128"]  # fmt: skip
REGIONS = ["{ }", "{ scf.yield }", "{ scf.condition(%c) }", "{ ^bb0(%z: i32): scf.yield %z : i32 }", "{ gpu.return }"]


@st.composite
def wild_operation(draw: st.DrawFn) -> str:
    """Any operation in the generic form, with any operands, attributes, regions and results."""
    name = draw(st.sampled_from(sorted(OPS)))
    low, high, results, regions = OPS[name].arity
    count = draw(st.sampled_from([low, low, min(high, low + 1), min(high, low + 2), low + 1]))
    operands = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=count, max_size=count))
    keys = OPS[name].attr_names
    attrs = {k: draw(st.sampled_from(ATTRS)) for k in keys if draw(st.booleans())}
    types = draw(st.lists(st.sampled_from(sorted(VALUES.values())), min_size=min(results, 1), max_size=2))
    bodies = [draw(st.sampled_from(REGIONS)) for _ in range(regions)]
    text = f'"{name}"({", ".join("%" + o for o in operands)})'
    if bodies:
        text += f" ({', '.join(bodies)})"
    text += " {" + ", ".join(f"{k} = {v}" for k, v in attrs.items()) + "}"
    return f"{text} : ({', '.join(VALUES[o] for o in operands)}) -> ({', '.join(types)})"


@given(st.lists(wild_operation(), min_size=1, max_size=2))
def test_any_operation_with_any_operands_is_refused_or_read(ops: list[str]) -> None:
    args = ", ".join(f"%{k}: {v}" for k, v in VALUES.items())
    sizes = "known_block_size = array<i32: 64, 1, 1>"
    survives(f"gpu.func @k({args}) kernel attributes {{{sizes}}} {{\n" + "\n".join(ops) + "\n}")


OBJECTS = [0, -1, 7, 1 << 70, True, None, "x", "slt", "soffset", (), (1, 0, 0, 0), ("nsw",), 1.5, float("nan"), {}, [1],
           ((0, 1, 2),)]  # fmt: skip
TYPES = sorted({v.type for build in SAMPLES.values() for o in build().walk() for v in o.results}, key=str)


def break_kernel(name: str, rng: random.Random) -> Kernel:
    """A sample with one to three things in it changed: an operand, a result type, an attribute, the order, a region."""
    kernel = SAMPLES[name]()
    ops = list(kernel.walk())
    values = [*kernel.args, *(r for o in ops for r in o.results)]
    for _ in range(rng.randint(1, 3)):
        op = rng.choice(ops)
        kind = rng.randrange(7)
        if kind == 0 and op.operands:
            op.operands[rng.randrange(len(op.operands))] = rng.choice(values)
        elif kind == 1 and op.results:
            op.results[0].type = rng.choice(TYPES)
        elif kind == 2 and op.attr_names:
            op.attrs = {**op.attrs, rng.choice(op.attr_names): rng.choice(OBJECTS)}
        elif kind == 3 and op.parent is not None:
            rng.shuffle(op.parent.ops)
        elif kind == 4 and op.parent is not None and op in op.parent.ops:
            op.parent.ops.remove(op)
        elif kind == 5 and op.operands:
            op.operands.pop()
        elif kind == 6 and op.regions:
            op.regions = op.regions[:-1]
    return kernel


def test_a_broken_kernel_verifies_or_is_refused_and_prints(full: bool) -> None:
    rng = random.Random(3)
    refused = 0
    for _ in range(10_000 if full else 500):
        kernel = break_kernel(rng.choice(list(SAMPLES)), rng)
        try:
            verify(kernel, rng.choice(STAGES), GFX942)
        except FlyError as e:
            refused += 1
            assert e.where is not None and str(e)
        print_kernel(kernel, locations=rng.random() < 0.5)
    assert refused > 100
