"""Random well-typed kernels verify, print, and read back as the same program."""

from __future__ import annotations

from hypothesis import given, strategies as st

from flyllvm.ir import types as t
from flyllvm.ir.builder import Builder
from flyllvm.ir.core import Kernel, Value
from flyllvm.ir.ops_arith import CMPF, CMPI, FLOAT_BINARY, FLOAT_UNARY, INT_BINARY, INT_UNARY
from flyllvm.ir.parser import parse_kernel
from flyllvm.ir.printer import print_kernel
from flyllvm.ir.verifier import verify
from tests.ir.compare import differences
from tests.ir.samples import GFX942, GLOBAL_F16, finish, start

SCALARS = (t.I1, t.I8, t.I32, t.I64, t.F16, t.BF16, t.F32, t.F64)
TYPES = (*SCALARS, t.VectorType(2, t.I32), t.VectorType(3, t.I8), t.VectorType(4, t.F32), t.VectorType(8, t.F16))
NAMES = st.one_of(st.just(""), st.sampled_from(["x", "acc", "x_1", "0", "a b", "für"]), st.text(max_size=6))


def _is_float(type_: t.Type) -> bool:
    return isinstance(t.scalar_of(type_), t.FloatType)


class Maker:
    """Draws operations; ``pools`` hold the values that may be used, by region."""

    def __init__(self, draw: st.DrawFn, b: Builder, args: list[Value]) -> None:
        self.draw, self.b = draw, b
        self.pools = [args]

    def pick(self, type_: t.Type) -> Value:
        """A value of a type: one that exists, or a new constant."""
        found = [v for pool in self.pools for v in pool if v.type == type_]
        if found and self.draw(st.booleans()):
            return self.draw(st.sampled_from(found))
        return self.keep(self.b.emit("arith.constant", (), [type_], {"value": self.number(type_)}).results[0])

    def keep(self, v: Value) -> Value:
        """Makes a value usable, under a drawn name; a constant stands in the kernel's body."""
        if self.draw(st.integers(0, 3)) == 0:
            v.name = self.draw(NAMES)
        self.pools[0 if v.block.depth == 0 else -1].append(v)
        return v

    def number(self, type_: t.Type) -> object:
        elem = t.scalar_of(type_)
        if isinstance(elem, t.FloatType):
            one = st.floats(width=32) if elem.bits >= 32 else st.floats(width=16)
        else:
            one = st.integers(-(1 << (elem.bits - 1)) if elem.bits > 1 else 0, (1 << elem.bits) - 1)
        count = t.count_of(type_)
        splat = count == 1 or self.draw(st.booleans())
        return self.draw(one) if splat else tuple(self.draw(one) for _ in range(count))

    def flags(self, *legal: str) -> tuple[str, ...]:
        return tuple(self.draw(st.lists(st.sampled_from(legal), unique=True, max_size=2)))

    def step(self, depth: int) -> None:
        kind = self.draw(st.integers(0, 9 if depth < 3 else 7))
        type_ = self.draw(st.sampled_from(TYPES))
        if kind <= 3:
            self.elementwise(type_)
        elif kind == 4:
            self.compare(type_)
        elif kind == 5:
            self.vector(type_)
        elif kind == 6:
            self.b.barrier(self.draw(st.booleans()))
        elif kind == 7:
            self.memory()
        elif kind == 8:
            self.branch(type_, depth)
        else:
            self.loop(type_, depth)

    def elementwise(self, type_: t.Type) -> None:
        a, c = self.pick(type_), self.pick(type_)
        if _is_float(type_):
            name = self.draw(st.sampled_from([*FLOAT_BINARY, *FLOAT_UNARY, "math.fma"]))
            attrs = {"fastmath": flags} if (flags := self.flags("contract", "nnan", "reassoc")) else None
        else:
            name = self.draw(st.sampled_from([*INT_BINARY, *INT_UNARY]))
            wraps = name in ("arith.addi", "arith.subi", "arith.muli", "arith.shli")
            attrs = {"overflow": flags} if wraps and (flags := self.flags("nsw", "nuw")) else None
        operands = [a] if name in FLOAT_UNARY or name in INT_UNARY else [a, c]
        self.keep(self.b.emit(name, [a, c, a] if name == "math.fma" else operands, [type_], attrs).results[0])

    def compare(self, type_: t.Type) -> None:
        a, c = self.pick(type_), self.pick(type_)
        name, legal = ("arith.cmpf", CMPF) if _is_float(type_) else ("arith.cmpi", CMPI)
        attrs = {"predicate": self.draw(st.sampled_from(legal))}
        cond = self.keep(self.b.emit(name, [a, c], [t.like(type_, t.I1)], attrs).results[0])
        self.keep(self.b.emit("arith.select", [cond, a, c], [type_]).results[0])

    def vector(self, type_: t.Type) -> None:
        v = self.pick(type_)
        if not isinstance(type_, t.VectorType):
            self.keep(self.b.emit("vector.broadcast", [v], [t.VectorType(3, type_)]).results[0])
            return
        at = self.draw(st.integers(0, type_.count - 1))
        size = self.draw(st.integers(1, type_.count - at))
        attrs = {"offset": at, "size": size}
        part = t.VectorType(size, type_.elem)
        self.keep(self.b.emit("vector.extract_strided_slice", [v], [part], attrs).results[0])
        mask = tuple(self.draw(st.lists(st.integers(0, 2 * type_.count - 1), min_size=1, max_size=4)))
        self.keep(
            self.b.emit("vector.shuffle", [v, v], [t.value_type(len(mask), type_.elem)], {"mask": mask}).results[0]
        )
        self.keep(self.b.emit("vector.extract", [v, self.pick(t.I32)], [type_.elem]).results[0])

    def memory(self) -> None:
        p = self.b.kernel.args[0]
        q = self.b.emit("fly.add_offset", [p, self.pick(t.I32)], [GLOBAL_F16]).results[0]
        self.b.ptr_store(self.keep(self.b.emit("fly.ptr.load", [q], [t.VectorType(8, t.F16)]).results[0]), p)

    def block(self, depth: int, *args: Value) -> None:
        self.pools.append(list(args))
        for _ in range(self.draw(st.integers(0, 3))):
            self.step(depth + 1)

    def branch(self, type_: t.Type, depth: int) -> None:
        yields = self.draw(st.booleans())

        def arm() -> list[Value]:
            self.block(depth)
            out = [self.pick(type_)] if yields else []
            self.pools.pop()
            return out

        for v in self.b.if_(self.pick(t.I1), arm, arm):
            self.keep(v)

    def loop(self, type_: t.Type, depth: int) -> None:
        inits = [self.pick(type_) for _ in range(self.draw(st.integers(0, 2)))]

        def body(*args: Value) -> list[Value]:
            self.block(depth, *args)
            out = [self.pick(type_) for _ in inits]
            self.pools.pop()
            return out

        if self.draw(st.booleans()):
            index = self.draw(st.sampled_from([t.I32, t.I64]))
            step = self.b.constant(self.draw(st.integers(1, 9)), index)
            results = self.b.for_(self.pick(index), self.pick(index), step, inits, body)
        else:
            results = self.b.while_(inits, lambda *a: (self.pick(t.I1), list(a)), body)
        for v in results:
            self.keep(v)


@st.composite
def kernels(draw: st.DrawFn) -> Kernel:
    args = [(GLOBAL_F16, "p"), *((x, draw(NAMES)) for x in draw(st.lists(st.sampled_from(TYPES), max_size=3)))]
    b, values = start(draw(st.one_of(st.just("k"), st.text(min_size=1, max_size=6))), *args)
    maker = Maker(draw, b, values)
    for _ in range(draw(st.integers(1, 10))):
        maker.step(0)
    return finish(b)


@given(kernels(), st.booleans())
def test_a_random_kernel_verifies_and_reads_back_as_the_same_program(kernel: Kernel, locations: bool) -> None:
    verify(kernel, "ssa", GFX942)
    text = print_kernel(kernel, locations=locations)
    again = parse_kernel(text, "random.fly")
    assert print_kernel(again, locations=locations) == text
    assert differences(kernel, again, locations=locations) == []
    verify(again, "ssa", GFX942)
