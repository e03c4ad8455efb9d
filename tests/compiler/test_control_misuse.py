"""Python's statements one by one: each works on run-time values, or is refused at its line with what to write."""

from __future__ import annotations

import abc
import contextlib
import functools

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import FlyError

from .test_control_errors import check, error, line_of

RUN_TIME = "known only at run time"
PLAIN = "decides Python control flow here"


# --- refused --------------------------------------------------------------------------------------


def test_leaving_a_with_or_a_try_from_a_traced_branch() -> None:
    def from_with(C: fx.Tensor, n: fx.Int32):
        if n > 3:
            with contextlib.nullcontext():
                return
        C[0] = 1.0

    def from_try(C: fx.Tensor, n: fx.Int32):
        for i in range(n):
            try:
                C[i] = 1.0
            finally:
                break  # noqa: B012

    check(from_with, "if n > 3", f"return inside an if whose condition is {RUN_TIME}", "at the end of the function")
    check(from_try, "for i in", "break inside a loop", "loop with while")


def test_return_and_continue_in_nested_loops_and_branches() -> None:
    def from_loop(C: fx.Tensor, n: fx.Int32):
        for _ in fx.range_constexpr(2):
            while n > 0:
                return

    def continued(C: fx.Tensor, n: fx.Int32):
        for i in fx.range_constexpr(4):
            if i > 2:
                if n > 3:
                    continue
                C[0] = 1.0
            C[i] = 1.0

    check(from_loop, "while n > 0", "return inside a while")
    check(continued, "if n > 3", "continue inside an if", "the opposite condition")


def test_a_broad_except_does_not_hide_a_refusal() -> None:
    def returns(C: fx.Tensor, n: fx.Int32):
        try:
            if n > 3:
                return
        except Exception:
            C[0] = 1.0

    def decides(C: fx.Tensor, n: fx.Int32):
        try:
            x = max(n, 3)
        except:  # noqa: E722
            x = 3
        C[x] = 1.0

    def inside(C: fx.Tensor, n: fx.Int32):
        if n > 3:
            y = 1.0
        for i in range(n):
            try:  # noqa: SIM105
                C[i] = y
            except (ValueError, BaseException):
                pass

    def suppressed(C: fx.Tensor, n: fx.Int32):
        with contextlib.suppress(Exception):
            C[0] = max(n, 3)

    check(suppressed, "max(n, 3)", PLAIN)
    check(returns, "if n > 3", "return inside an if")
    check(decides, "max(n, 3)", PLAIN, "fx.max")
    check(inside, "C[i] = y", "y has no value here")


def test_what_an_author_catches_by_name_is_caught() -> None:
    def k(C: fx.Tensor, n: fx.Int32):
        try:
            fx.rocdl.WMMA(16, 16, 16, fx.Float16)
        except FlyError:
            C[0] = 1.0
        with contextlib.suppress(FlyError):
            max(n, 3)
        with contextlib.suppress(ValueError):
            int("x")
        try:
            x = int("x")
        except Exception:
            x = 4
        C[x] = 2.0

    assert len([op for op in flyc.kernel(k).trace(["f32[8]", fx.Int32], "gfx942").body.ops if "store" in op.name]) == 2


def test_deleting_a_variable_in_one_branch_or_in_a_loop() -> None:
    def branch(C: fx.Tensor, n: fx.Int32):
        y = 1.0
        if n > 3:
            del y
        C[0] = y

    def loop(C: fx.Tensor, n: fx.Int32):
        y = 1.0
        for _ in range(n):
            del y

    check(branch, "C[0] = y", "y has no value here", "in one branch only of the if at", "in both branches")
    check(loop, "del y", "y is deleted in the loop", "do not delete y in the loop")


def test_an_assignment_expression_in_a_run_time_condition() -> None:
    def in_while(C: fx.Tensor, n: fx.Int32):
        while (m := n - 1) > 0:
            n = m

    def in_chain(C: fx.Tensor, n: fx.Int32):
        if n > 1 and (m := n * 2) > 5:
            C[0] = m

    def in_ternary(C: fx.Tensor, n: fx.Int32):
        C[0] = (m := n + 1) if n > 2 else (m := n + 2)
        C[1] = m

    for fn, at, what in (
        (in_while, "while (m", ":= inside a while"),
        (in_chain, "if n > 1", ":= inside a chain of and / or"),
        (in_ternary, "if n > 2", ":= inside an if"),
    ):
        check(fn, at, what, RUN_TIME, "in a statement of its own")


def test_a_name_bound_by_with_import_def_or_class_in_one_branch() -> None:
    def by_with(C: fx.Tensor, n: fx.Int32):
        if n > 3:
            with contextlib.nullcontext(n) as v:
                C[0] = 1.0
        C[1] = v

    def by_def(C: fx.Tensor, n: fx.Int32):
        if n > 3:

            def v():
                return 1.0

        C[1] = v()

    def by_class(C: fx.Tensor, n: fx.Int32):
        if n > 3:

            class v:
                x = 1.0

        C[1] = v.x

    def by_import(C: fx.Tensor, n: fx.Int32):
        if n > 3:
            import math as v
        C[1] = v.pi

    for fn in (by_with, by_def, by_class, by_import):
        check(fn, "C[1] = v", "v has no value here", "in one branch only")


def test_a_name_given_by_some_of_the_branches_of_an_elif() -> None:
    def k(C: fx.Tensor, n: fx.Int32):
        if n > 3:
            y = 1.0
        elif n > 2:
            y = 2.0
        C[0] = y

    check(k, "C[0] = y", "y has no value here", "in one branch only")


class Held:
    """An object of the author's."""

    def __init__(self, v):
        self.v = v

    @property
    def clipped(self):
        return 3 if self.v > 3 else self.v

    def __add__(self, other):
        y = self.v
        if self.v > other:
            y = other
        return y

    def __getitem__(self, i):
        return self.v if i > 0 else i

    def __enter__(self):
        if self.v > 0:
            self.v = self.v + 1
        return self

    def __exit__(self, *args):
        pass


def test_properties_operators_and_contexts_of_the_authors_classes() -> None:
    def of_property(C: fx.Tensor, n: fx.Int32):
        C[0] = Held(n).clipped

    def of_operator(C: fx.Tensor, n: fx.Int32):
        C[0] = Held(n) + 3

    def of_index(C: fx.Tensor, n: fx.Int32):
        C[0] = Held(n)[n]

    def of_context(C: fx.Tensor, n: fx.Int32):
        with Held(n) as a:
            C[0] = a.v

    places = [
        (of_property, Held.clipped.fget, "if self.v > 3"), (of_operator, Held.__add__, "if self.v > other"),
        (of_index, Held.__getitem__, "if i > 0"), (of_context, Held.__enter__, "if self.v > 0"),
    ]  # fmt: skip
    for fn, method, at in places:
        message = error(fn)
        assert message.startswith(f"{line_of(method, at)} (called from ") and PLAIN in message


@functools.lru_cache
def cached(x):
    return 0 if x > 3 else 1


def test_functions_that_a_library_calls_and_pythons_own_on_run_time_values() -> None:
    def cache(C: fx.Tensor, n: fx.Int32):
        C[0] = cached(n)

    def smallest(C: fx.Tensor, n: fx.Int32):
        C[0] = min(n, 3)

    def ordered(C: fx.Tensor, n: fx.Int32):
        C[0] = sorted([n, C[1]])[0]

    def contained(C: fx.Tensor, n: fx.Int32):
        if n in (1, 2):
            C[0] = 1.0

    def some(C: fx.Tensor, n: fx.Int32):
        if any(n > i for i in range(3)):
            C[0] = 1.0

    def asserted(C: fx.Tensor, n: fx.Int32):
        assert n > 3

    def matched(C: fx.Tensor, n: fx.Int32):
        match n:
            case 3:
                C[0] = 1.0

    assert error(cache).startswith(f"{line_of(cached.__wrapped__, 'if x > 3')} (called from ")
    for fn, at in (
        (smallest, "min("), (ordered, "sorted("), (contained, "if n in"), (some, "if any"), (asserted, "assert n"),
        (matched, "match n"),
    ):  # fmt: skip
        message = error(fn)
        assert PLAIN in message and "fx.max, fx.min" in message
        assert message.startswith(line_of(fn, at).rpartition(":")[0])


def test_run_time_numbers_where_python_wants_its_own() -> None:
    def index(C: fx.Tensor, n: fx.Int32):
        C[0] = [1.0, 2.0][n]

    def counted(C: fx.Tensor, n: fx.Int32):
        for j, i in enumerate(range(n)):
            C[i] = j

    def backwards(C: fx.Tensor, n: fx.Int32):
        for i in reversed(range(n)):
            C[i] = 1.0

    def as_float(C: fx.Tensor, n: fx.Int32):
        C[0] = float(n)

    def text(C: fx.Tensor, n: fx.Int32):
        print(f"{n:>5}")

    check(index, "[1.0, 2.0]", "is used where Python needs an int", "keep what a run-time number picks in a tensor")
    check(counted, "for j, i", "is used where Python needs an int", "goes over range(...) itself")
    check(backwards, "for i in", "is used where Python needs an int", "goes over range(...) itself")
    check(as_float, "float(n)", "has no Python value", ".to(fx.Float32)")
    check(text, "print(", "the format '>5'", "fx.printf")


async def coroutine(C: fx.Tensor, n: fx.Int32):
    C[0] = 1.0


def test_an_async_kernel_and_a_generator_of_run_time_conditions() -> None:
    def values(n):
        if n > 3:
            yield 1.0
        yield 2.0

    def k(C: fx.Tensor, n: fx.Int32):
        for x in values(n):
            C[0] = x

    assert "the kernel coroutine is a generator or coroutine" in error(coroutine)
    message = error(k)
    assert message.startswith(f"{line_of(values, 'if n > 3')} (called from ") and "collect values in a list" in message


def test_containers_that_change_their_keys_in_one_arm() -> None:
    def grown(C: fx.Tensor, n: fx.Int32):
        s = {1}
        if n > 3:
            s.add(2)

    def deleted(C: fx.Tensor, n: fx.Int32):
        d = {"a": n, "b": 1}
        if n > 3:
            del d["b"]

    def attribute(C: fx.Tensor, n: fx.Int32):
        a = Held(n)
        if n > 3:
            a.w = 1

    def default(x, seen=[]):  # noqa: B006
        seen.append(x)
        return len(seen)

    def kept(C: fx.Tensor, n: fx.Int32):
        if n > 3:
            C[0] = default(n)

    for fn, what in (
        (grown, "s has the elements ['1', '2']"), (deleted, "d has the keys ['a']"),
        (attribute, "a has the attributes ['v', 'w']"), (kept, "default has 1 elements"),
    ):  # fmt: skip
        check(fn, "if n > 3", what, "after one branch of an if", "branches work on copies")


def test_an_exception_of_a_traced_branch_says_that_branches_are_always_traced() -> None:
    def k(C: fx.Tensor, n: fx.Int32):
        if n > 3:
            raise ValueError("too many")

    with pytest.raises(ValueError, match="too many") as caught:
        flyc.kernel(k).trace(["f32[?]", fx.Int32], "gfx942")
    assert caught.value.__notes__ == [
        f"The branch at {line_of(k, 'if n > 3')} is traced whatever happens at run time, and raised this."
    ]


KEPT = []


def test_a_value_kept_from_another_kernel() -> None:
    def keeps(C: fx.Tensor, n: fx.Int32):
        KEPT.append(n)

    def uses(C: fx.Tensor, n: fx.Int32):
        C[0] = KEPT[0]

    flyc.compile(flyc.kernel(keeps), "i32[?]", fx.Int32, arch="gfx942", stop_after="llvm")
    with pytest.raises(FlyError, match=r"does not belong to this kernel\n  fix: .*none kept from another one"):
        flyc.compile(flyc.kernel(uses), "i32[?]", fx.Int32, arch="gfx942", stop_after="llvm")


def test_two_functions_that_call_each_other_for_ever_from_a_traced_branch() -> None:
    def ping(x):
        return pong(x) if x > 0 else 0

    def pong(x):
        return ping(x - 1)

    def k(C: fx.Tensor, n: fx.Int32):
        C[0] = ping(n)

    assert "nest 100 deep" in error(k) and "use a loop" in error(k)


# --- what works -----------------------------------------------------------------------------------


def star(*args, **named):
    best = args[0]
    for a in args[1:]:
        if a > best:
            best = a
    for v in named.values():
        if v > 0:
            best = best + v
    return best


def defaults(x, y=3, *, z=None):
    if z is None:
        z = x
    if x > y:
        z = z + y
    return z


class Base:
    """A class with a method, to be called by ``super``."""

    def step(self, x):
        if x > 0:
            x = x + 1
        return x


class Derived(Base, abc.ABC):
    """Its child, with a metaclass."""

    def __init__(self, start=0):
        self.start = 1
        if start > 3:
            self.start = start

    @staticmethod
    def larger(a, b):
        if a > b:
            r = a
        else:
            r = b
        return r

    @classmethod
    def of(cls, x):
        v = -x
        if x > 0:
            v = x
        return v

    def step(self, x):
        if x > 1:
            x = super().step(x)
        return x

    def __call__(self, x):
        y = 7
        if x > 0:
            y = x
        return y


def decorate(f):
    @functools.wraps(f)
    def inner(*args):
        return f(*args) + 1

    return inner


@decorate
def decorated(x):
    if x > 3:
        x = 0
    return x


def calls(A, n):
    more = {"q": n}
    A[0] = star(n, A[1], A[2], x=n, y=A[3]) + star(*[n, n + 1], **more)
    A[1] = defaults(n) + defaults(n, 4, z=n)
    d = Derived(n)
    A[2] = d.start + d.step(n) + Derived.larger(n, 3) + Derived.of(n) + d(n)
    A[3] = decorated(n) + functools.partial(decorated.__wrapped__)(n) + (lambda x, y=n: x + y)(1)


def scopes(A, n):
    total = n

    def add(i):
        nonlocal total
        if i > 1:
            total = total + i

    for i in range(n):
        add(i)

        def twice(x=i):
            return 2 * x

        A[i] = twice()
    xs = [(last := n + i) for i in range(3)] + [n if n > i else 0 for i in range(3)]
    A[7] = total + sum(xs) + last


def statements(A, n):
    y = n
    if n > 3:
        try:
            y = int("x")
        except ValueError:
            y = n + 5
        finally:
            A[6] = 1
    match len(A.shape):
        case 1:
            if n > 2:
                y = y + 4
        case _:
            y = 2
    a, *b = (n, 1, 2)
    if 0 < n < 5 != y:
        a, *b = (1, n, 3)
    with contextlib.nullcontext(y) as v:
        if v > n:
            del v
            y = y - 1
    i = 0
    for i in range(n):  # noqa: B007
        pass
    if (m := n + 1) > 3:
        A[5] = m
    A[0] = y + a + b[0] + i + m


class Shaped(list):
    """A list that looks like the tensor it stands for."""

    shape = (8,)


@pytest.mark.sim
@pytest.mark.parametrize("fn", [calls, scopes, statements])
@pytest.mark.parametrize("n", [0, 1, 3, 4, 7])
def test_what_works_gives_what_python_gives(fn, n) -> None:
    want = Shaped(range(10, 18))
    fn(want, n)
    got = np.arange(10, 18, dtype=np.int32)
    fn.__annotations__ = {"A": fx.Tensor, "n": fx.Int32}
    made = flyc.compile(flyc.kernel(fn), "i32[8]", fx.Int32, arch="gfx942", stop_after="llvm")
    made.simulate(got, n, grid=1, block=1)
    assert got.tolist() == list(want)
