"""Rewriting of sources: what is rewritten, what stays, and that everything keeps its place in the author's file."""

from __future__ import annotations

import functools
import inspect
import linecache
import textwrap
import types

import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.compiler.rewrite import callee, rewritten
from flyllvm.errors import TraceError


def traced(fn, *specs):
    return flyc.kernel(fn).trace(specs or ["i32[?]", fx.Int32], "gfx942")


def ops(kernel, name):
    return [o for o in kernel.walk() if o.name == name]


def line(fn, text):
    lines, first = inspect.getsourcelines(fn)
    (at,) = [i for i, source in enumerate(lines) if text in source]
    return first + at


def calls(*args, **kwargs):
    """A Python function that is run once rewritten and once as written; both must agree."""
    fn = args[0]
    return fn(*args[1:], **kwargs), rewritten(fn)(*args[1:], **kwargs)


# --- places ---------------------------------------------------------------------------------------


def helper(C, x):
    if x > 3:
        C[x] = 7
    return x


def test_operations_in_branches_and_bodies_keep_the_authors_line_and_no_extra_frames():
    def k(C: fx.Tensor, n: fx.Int32):
        for i in range(n):
            if i % 2 == 1:
                C[i] = 5
        while n > 0:
            n = helper(
                C,
                n,
            )
            [C.iter.store(v) for v in (1,)]

    kernel = traced(k)
    stores = ops(kernel, "fly.ptr.store")
    places = [[(f.func, f.line) for f in o.loc.frames] for o in stores]
    outer = line(k, "n = helper(")
    assert places == [
        [("k", line(k, "C[i] = 5"))],
        [("helper", line(helper, "C[x] = 7")), ("k", outer)],
        [("k", line(k, "[C.iter.store"))],
    ]
    assert {f.file for o in stores for f in o.loc.frames} == {__file__}
    assert [o.loc.frames[0].line for o in ops(kernel, "scf.for")] == [line(k, "for i in")]
    assert [o.loc.frames[0].line for o in ops(kernel, "scf.while")] == [line(k, "while n")]
    firsts = {f.func_line for o in kernel.walk() for f in o.loc.frames if f.func == "k"}
    assert firsts == {k.__code__.co_firstlineno}


def test_a_python_error_shows_the_authors_line_and_function():
    def k(C: fx.Tensor, n: fx.Int32):
        for _ in range(n):
            if n > 3:
                {}["absent"]

    with pytest.raises(KeyError) as caught:
        traced(k)
    entry = caught.traceback[-1]
    assert entry.lineno + 1 == line(k, "absent") and entry.name == "k"


# --- what is rewritten ----------------------------------------------------------------------------


def test_a_function_is_rewritten_once():
    fn = rewritten(helper)
    assert fn is not helper and rewritten(helper).__code__ is fn.__code__
    assert rewritten(fn) is fn


def test_functions_without_calls_and_control_flow_stay_as_they_are():
    def plain(x):
        y = x + 1
        return [y, max(y, 3)]

    assert rewritten(plain) is plain


@pytest.mark.parametrize("fn", [textwrap.dedent, functools.wraps, fx.make_layout, pytest.raises])
def test_library_functions_stay_as_they_are(fn):
    assert callee(fn) is fn


def test_builtins_classes_and_other_callables_stay_as_they_are():
    for f in (len, int, types.SimpleNamespace, [].append, 3, None):
        assert callee(f) is f or callee(f) == f


class Base:
    scale = 2

    def __init__(self, n):
        self.__hidden = n

    def hidden(self, x):
        return self.__hidden + x if x > 0 else -self.__hidden

    def twice(self, x):
        return x * 2 if x > 0 else 0


class Derived(Base):
    def twice(self, x):
        y = super().twice(x)
        if y > 4:
            y = y * self.scale
        return y

    def __call__(self, x):
        return self.twice(x) if x else -1

    @staticmethod
    def static(x):
        return x if x > 2 else 2

    @classmethod
    def make(cls, x):
        return cls(x if x > 0 else 1)


def test_methods_keep_private_names_super_and_binding():
    d = Derived(5)
    for x in (-1, 0, 1, 3):
        assert callee(d.hidden)(x) == d.hidden(x)
        assert callee(d.twice)(x) == d.twice(x)
        assert callee(d)(x) == d(x)
        assert callee(Derived.static)(x) == Derived.static(x)
        assert isinstance(callee(Derived.make)(x), Derived)
    assert callee(d.twice).__func__ is not Derived.twice


class Sized:
    def __init__(self, n, low=2):
        if n > low:
            self.n = n
        else:
            self.n = low


class Subclass(Sized):
    def __init__(self, n):
        super().__init__(n if n else 1, low=3)


def test_constructors_are_rewritten():
    assert callee(Sized) is not Sized and callee(int) is int and callee(types.SimpleNamespace) is types.SimpleNamespace
    made = callee(Subclass)(0)
    assert type(made) is Subclass and made.n == 3

    def k(C: fx.Tensor, n: fx.Int32):
        C[0] = Sized(n).n

    assert ops(traced(k), "arith.select")


def test_methods_trace():
    def k(C: fx.Tensor, n: fx.Int32):
        C[0] = Derived(5).twice(n) + Derived(n).hidden(n)

    assert traced(k)


def test_a_partial_is_rewritten_inside():
    def pick(a, b, *, c=3):
        if a > b:
            r = a
        else:
            r = b + c
        return r

    def k(C: fx.Tensor, n: fx.Int32):
        C[0] = functools.partial(pick, n, c=1)(7)

    assert ops(traced(k), "arith.select")


def test_closures_share_their_cells_with_the_original():
    def outer():
        count = 0

        def step(by=2, *more, flag=True, **rest):
            nonlocal count
            if flag and by:
                count += by + len(more) + len(rest)
            return count

        return step, lambda: count

    step, count = outer()
    new = rewritten(step)
    assert new is not step
    assert (new(), new(1, 2, 3, k=4), new(flag=False)) == (2, 6, 6)
    assert count() == 6


def test_globals_are_those_of_the_module():
    def reads():
        return SETTING if SETTING else None

    assert rewritten(reads)() == "a"
    globals()["SETTING"] = "b"
    try:
        assert rewritten(reads)() == "b"
    finally:
        globals()["SETTING"] = "a"


SETTING = "a"


def recursive(n):
    return 1 if n < 2 else n * recursive(n - 1)


def shadows(range):
    out = []
    for i in range(3):
        out.append(i)
    return out


def test_names_mean_what_they_meant():
    assert calls(recursive, 5) == (120, 120)
    assert calls(shadows, lambda n: [n, n]) == ([3, 3], [3, 3])


def everything(xs, flag):
    """A function with all statements there are."""
    import math as m
    from os import path

    out, total = [], 0
    with pytest.raises(ZeroDivisionError) if flag else types_context() as box:
        if flag:
            total = 1 / 0
    try:
        if xs[0] > 1:
            raise KeyError("x")
    except KeyError as e:
        out.append(str(e))
    else:
        out.append("none")
    finally:
        total += 1
    match xs:
        case [a, *rest] if a > 1:
            total += a + len(rest)
        case [a]:
            total += 100
        case _:
            total -= 1
    for i, x in enumerate(xs):
        if x == 3:
            continue
        if x == 9:
            break
        total += i * x
    else:
        out.append("all")
    i = 0
    while i < 3 and not (total > 10**9):
        i += 1
        if i == 2:
            continue
    while (n := len(out)) < 4:
        out.append(n)
    squares = {x: (y := x * x) for x in xs if x % 2}
    del i
    value = "yes" if 0 < total < 1000 and flag else "no"
    chained = 1 < total == total < 10**6
    return chained, out, total, squares, value, y, m.floor(1.5), path.sep, box is not None


class types_context:
    def __enter__(self):
        return None

    def __exit__(self, *exc):
        return False


@pytest.mark.parametrize("xs", [[1], [2, 3, 5], [0, 1, 9, 4], [7]])
@pytest.mark.parametrize("flag", [True, False])
def test_plain_python_gives_the_same_rewritten(xs, flag):
    a, b = calls(everything, xs, flag)
    assert a == b


def annotated(x, things):
    """Declarations in branches and loops."""
    n: int
    n = x + 1
    if x > 1:
        y: int = x
        z: list[int]
        z = [n]
        things.total: int = y
    else:
        y: int = -x
        z = []
    for i in range(2):
        w: int = i
        import json as j
        from os import path as p

        def inner(v, k=w):
            return v + k

        class Local:
            size = 3
            both = [w, 4]

            def twice(self):
                return self.size * 2 if self.size else 0

        try:
            raise ValueError(i)
        except ValueError as error:
            message = f"{error!s:>3}{'x' if i else 'y'}"
        y = inner(y) + Local().twice() + len(Local.both) + (k := i)
    values = [(last := v) for v in (1, 2) if v]
    return y, z, w, j.__name__, p.sep, message, k, last, values


def test_annotations_imports_definitions_and_handlers_in_branches():
    for x in (0, 5):
        a, b = calls(annotated, x, types.SimpleNamespace())
        assert a == b


def test_generators_and_coroutines_stay_usable():
    def counts(n):
        for i in range(n):
            if i % 2:
                yield i

    async def later(x):
        return x if x else 1

    assert calls(counts, 5)[1].gi_code and list(rewritten(counts)(5)) == [1, 3]
    assert rewritten(later) is later


# --- sources --------------------------------------------------------------------------------------

SOURCE = """
import flyllvm.compiler as flyc
import flyllvm.expr as fx

@flyc.kernel
def k(C: fx.Tensor, n: fx.Int32):
    total = 0
    for i in range(n):
        total += i
    C[0] = total
"""


def test_a_kernel_of_a_file_run_by_exec_is_found_by_its_name(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(SOURCE)
    space = {"__name__": "anything"}
    exec(compile(SOURCE, str(path), "exec"), space)
    assert ops(space["k"].trace(["i32[?]", fx.Int32], "gfx942"), "scf.for")


def test_a_kernel_whose_text_linecache_holds_is_found():
    name = "<cell 1>"
    linecache.cache[name] = (len(SOURCE), None, SOURCE.splitlines(keepends=True), name)
    space = {"__name__": "notebook"}
    exec(compile(SOURCE, name, "exec"), space)
    assert ops(space["k"].trace(["i32[?]", fx.Int32], "gfx942"), "scf.for")


def test_without_source_plain_python_works_and_a_traced_loop_is_refused():
    space = {"__name__": "nowhere"}
    exec(compile(SOURCE, "<no file>", "exec"), space)
    with pytest.raises(TraceError, match=r"<no file>:8: .*\n.*its source must be in a file"):
        space["k"].trace(["i32[?]", fx.Int32], "gfx942")
    plain = SOURCE.replace("range(n)", "range(3)")
    space = {"__name__": "nowhere"}
    exec(compile(plain, "<no file>", "exec"), space)
    space["k"].trace(["i32[?]", fx.Int32], "gfx942")


def test_a_source_that_was_edited_after_its_import_is_not_taken(tmp_path):
    path = tmp_path / "edited.py"
    path.write_text(SOURCE.replace("total", "amount").replace("range(n)", "range(3)"))
    space = {"__name__": "edited"}
    exec(compile(SOURCE.replace("range(n)", "range(3)"), str(path), "exec"), space)
    assert rewritten(space["k"].fn) is space["k"].fn
