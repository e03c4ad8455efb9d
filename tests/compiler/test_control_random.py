"""Random functions: traced and run in the simulator they compute what Python computes from the same source."""

from __future__ import annotations

import linecache
import random

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx

pytestmark = pytest.mark.sim
LANES = 64
HEAD = """
def helper(x, y):
    r = x
    if x > y:
        r = y + 1
    for i in range(y & 3):
        r = (r * 3 + i) & 1023
    return r

class Cell:
    def __init__(self, v):
        self.v = v

    def bump(self, x):
        if x & 1:
            self.v = (self.v + x) & 1023
        return self.v

def body(t, n, A):
    a, b, c, q = t & 15, n, 7, t & 3
    xs = [t & 3, 5, n]
    d = {"p": t & 7, "q": 2}
    pair = (t & 1, 3)
    cell = Cell(n)

    def add(x):
        nonlocal c
        c = (c + x) & 1023
        xs[0] = (xs[0] + 1) & 1023
        return c

"""
TAIL = """
    return (a + 37 * q + 3 * b + 5 * c + 7 * xs[0] + 11 * xs[1] + 13 * xs[2] + 17 * d["p"] + 19 * d["q"] + 23 * pair[0]
            + 29 * pair[1] + 31 * cell.v)
"""
PLACES = ["a", "b", "c", "q", "xs[0]", "xs[1]", "xs[2]", 'd["p"]', 'd["q"]', "cell.v"]


class Writer:
    """Writes the statements of one function."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.loops = 0

    def value(self, depth: int = 0) -> str:
        r, deep = self.r, depth > 1
        kind = r.randrange(6 if deep else 11)
        if kind == 0:
            return str(r.randrange(12))
        if kind == 1:
            return r.choice(["t", "n", "pair[0]", "pair[1]"])
        if kind < 6:
            return r.choice(PLACES)
        x, y = self.value(depth + 1), self.value(depth + 1)
        return {
            6: f"(({x} + {y}) & 1023)",
            7: f"(({x} - {y}) & 1023)",
            8: f"({x} if {self.test(depth + 1)} else {y})",
            9: f"helper({x}, {y})",
            10: f"A[({x}) & 31]",
        }[kind]

    def test(self, depth: int = 0) -> str:
        r = self.r
        x, y = self.value(depth + 1), self.value(depth + 1)
        kind = r.randrange(4 if depth > 1 else 8)
        if kind < 4:
            return f"{x} {r.choice(['<', '<=', '==', '!=', '>'])} {y}"
        if kind == 4:
            return f"({self.test(depth + 1)} {r.choice(['and', 'or'])} {self.test(depth + 1)})"
        if kind == 5:
            return f"not ({self.test(depth + 1)})"
        return f"{x} <= {self.value(depth + 1)} < {y}"

    def block(self, indent: str, depth: int) -> list[str]:
        return [line for _ in range(self.r.randrange(1, 4)) for line in self.statement(indent, depth)]

    def statement(self, indent: str, depth: int) -> list[str]:
        r = self.r
        inner, kind = indent + "    ", r.randrange(8 if depth > 2 else 13)
        if kind < 4:
            return [f"{indent}{r.choice(PLACES)} = {self.value()}"]
        if kind == 4:
            return [f"{indent}pair = ({self.value(1)}, pair[0])"]
        if kind == 5:
            return [f"{indent}xs = [{self.value(1)} for x in xs]"]
        if kind == 6:
            return [f"{indent}{r.choice(['a', 'b'])} = {r.choice(['add', 'cell.bump'])}({self.value(1)})"]
        if kind == 7:
            return [f"{indent}a, b = b, a"]
        if kind < 11:
            lines = [f"{indent}if {self.test()}:", *self.block(inner, depth + 1)]
            if r.random() < 0.3:
                lines += [f"{indent}elif {self.test()}:", *self.block(inner, depth + 1)]
            return lines + ([f"{indent}else:", *self.block(inner, depth + 1)] if r.random() < 0.6 else [])
        if r.random() < 0.2:
            things = r.choice(["()", "(1, 2)", "(a, b)", "xs", "[c]"])
            lines = [f"{indent}for q in {things}:", *self.block(inner, depth + 1)]
            return lines + ([f"{inner}if {r.choice(['1', '0'])}:", f"{inner}    break"] if r.random() < 0.3 else [])
        self.loops += 1
        i = f"i{self.loops}"
        if kind == 11:
            bound = r.choice(["(n & 3)", "2", "(t & 3)", "(a & 3)"])
            body = self.block(inner, depth + 1)
            return [f"{indent}for {i} in range({bound}):", *body, f"{inner}a = (a + {i}) & 1023"]
        return [
            f"{indent}{i} = 0",
            f"{indent}while {i} < {r.choice(['3', '(t & 3)'])} and {self.test(1)}:",
            *self.block(inner, depth + 1),
            f"{inner}{i} += 1",
        ]


def function(seed: int):
    writer = Writer(seed)
    source = HEAD + "\n".join(line for _ in range(5) for line in writer.statement("    ", 0)) + TAIL
    name = f"<random {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict[str, object] = {"__name__": "random_program"}
    exec(compile(source, name, "exec"), space)
    return space["body"], source


def check(seed: int) -> None:
    body, source = function(seed)

    @flyc.kernel(known_block_size=(LANES, 1, 1))
    def k(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
        t = fx.thread_idx.x
        C[t] = body(t, n, A)

    made = flyc.compile(k, "i32[?]", "i32[?]", fx.Int32, arch="gfx942", stop_after="llvm")
    a = np.arange(32, dtype=np.int32) * 11 % 37
    for n in (0, 3):
        got = np.zeros(LANES, np.int32)
        made.simulate(got, a, n, grid=1)
        want = [body(t, n, a.tolist()) for t in range(LANES)]
        assert got.tolist() == want, f"seed {seed}, n {n}\n{source}"


@pytest.mark.parametrize("seed", [*range(10), 2065, 2342, 2485, 11071])
def test_a_random_function_computes_what_python_computes(seed):
    check(seed)


@pytest.mark.slow
def test_many_random_functions(full):
    for seed in range(100, 1100 if full else 120):
        check(seed)
