"""Every public name, given what it does not take, says so as a flyllvm error with the author's line."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import FlyError

HOMES = {
    "": fx, "math.": fx.math, "arith.": fx.arith, "gpu.": fx.gpu, "rocdl.": fx.rocdl, "rocdl.cdna4.": fx.rocdl.cdna4,
    "rocdl.cdna5.": fx.rocdl.cdna5,
}  # fmt: skip


def _is_error(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, Exception)


def public() -> Iterator[tuple[str, Any]]:
    seen = set()
    for place, home in HOMES.items():
        for name in sorted(n for n in dir(home) if not n.startswith("_")):
            found = getattr(home, name)
            ours = getattr(found, "__module__", "").startswith("flyllvm.") and not _is_error(found)
            if callable(found) and ours and not isinstance(found, types.ModuleType) and id(found) not in seen:
                seen.add(id(found))
                yield place + name, found


PUBLIC = dict(public())
#: What to pass in the place of anything; made inside of a kernel.
WRONG: dict[str, Callable[[Any], Any]] = {
    "None": lambda A: None, "str": lambda A: "x", "float": lambda A: 1.5, "negative": lambda A: -3,
    "array": lambda A: np.zeros(3, np.float32), "object": lambda A: object(), "dict": lambda A: {},
    "layout": lambda A: fx.make_layout(4, 1), "module": lambda A: fx, "class": lambda A: dict, "list": lambda A: [],
    "tensor": lambda A: A, "atom": lambda A: fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32),
    "run-time float": lambda A: A[0], "vector": lambda A: fx.full(4, 1.0, fx.Float32), "pointer": lambda A: A.iter,
    "type": lambda A: fx.Float32, "run-time int": lambda A: fx.thread_idx.x, "wide int": lambda A: A[0].to(fx.Int64),
}  # fmt: skip


def required(found: Any) -> int:
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters)


def outcome(call: Callable[[Any], Any], trace_only: bool = False) -> FlyError | None:
    """The error of a kernel that makes a call, ``None`` where it compiles; any other exception fails the test."""

    @flyc.kernel(known_block_size=(64, 1, 1))
    def k(A: fx.Tensor):
        call(A)

    try:
        if trace_only:
            k.trace(["f32[4096]"], "gfx942")
        else:
            flyc.compile(k, "f32[4096]", arch="gfx942", stop_after="llvm")
    except FlyError as e:
        assert f"{__file__}:" in str(e.where), f"no line of the author's: {e}"
        assert e.fix, f"no fix: {e}"
        return e
    return None


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_takes_its_arguments_or_refuses_them_at_the_authors_line(name: str) -> None:
    found = PUBLIC[name]
    count = required(found)
    for kind in ("None", "str", "float", "object", "layout", "tensor", "vector", "run-time int"):
        make = WRONG[kind]
        outcome(lambda A, make=make: found(*[make(A)] * max(count, 1)), True)  # type: ignore[misc]
    if count:
        assert outcome(lambda A: found(), True) is not None
    assert outcome(lambda A: found(*[1] * count, nonsense=3), True) is not None


# --- one wrong argument among right ones ----------------------------------------------------------


MAKE: dict[str, Callable[[Any], Any]] = {
    "p": lambda e: e.A.iter,
    "t": lambda e: fx.thread_idx.x,
    "x": lambda e: e.A[e.t],
    "M": lambda e: fx.make_view(e.p, fx.make_layout((64, 64), (64, 1))),
    "one": lambda e: fx.make_view(e.p, fx.make_layout(1, 1)),
    "L": lambda e: fx.make_layout((4, 8), (8, 1)),
    "F": lambda e: filled(fx.make_rmem_tensor(4, fx.Float32)),
    "r1": lambda e: filled(fx.make_rmem_tensor(1, fx.Float32)),
    "off": lambda e: filled(fx.make_rmem_tensor(4, fx.Int32)),
    "copy": lambda e: fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32),
    "mma": lambda e: fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32)),
    "tiled": lambda e: fx.make_tiled_mma(e.mma, fx.make_layout((1, 1, 1), (1, 1, 1))),
    "fa": lambda e: filled(e.tiled.make_fragment_A(fx.make_view(e.p, fx.make_layout((16, 4), (4, 1))))),
    "fb": lambda e: filled(e.tiled.make_fragment_B(fx.make_view(e.p, fx.make_layout((16, 4), (4, 1))))),
    "fc": lambda e: filled(e.tiled.make_fragment_C(fx.make_view(e.p, fx.make_layout((16, 16), (16, 1))))),
    "lds": lambda e: fx.get_dyn_shared(fx.Float32),
    "buffer": lambda e: fx.rocdl.make_buffer_ptr(e.p, 4096),
    "wide": lambda e: fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32),
    "tiled_copy": lambda e: fx.make_tiled_copy_tv(
        e.wide, fx.make_layout((4, 16), (16, 1)), fx.make_layout((1, 4), (4, 1))
    ),
    "storage": lambda e: fx.SharedAllocator().allocate(fx.struct["a" : fx.Float32, "b" : fx.Array[fx.Float16, 8]]),
}


def filled(fragment: Any) -> Any:
    fragment.fill(0)
    return fragment


class Things:
    """Right arguments of every kind, made inside of a kernel when they are asked for."""

    def __init__(self, A: Any) -> None:
        self.A = A

    def __getattr__(self, name: str) -> Any:
        made = MAKE[name](self)
        setattr(self, name, made)
        return made


#: A right call of a name, and per argument what else of ``WRONG`` it takes.
CALLS: dict[str, tuple[Callable[[Things], tuple[Any, ...]], tuple[str, ...]]] = {
    "copy": (lambda e: (e.copy, e.one, e.r1), ("atom", "", "")),
    "gemm": (lambda e: (e.tiled, e.fc, e.fa, e.fb, e.fc), ("", "", "", "", "")),
    "copy_atom_call": (lambda e: (e.copy, e.one, e.r1), ("atom", "", "")),
    "gather": (lambda e: (e.copy, e.p, e.off, e.F), ("atom", "pointer", "", "")),
    "scatter": (lambda e: (e.copy, e.F, e.p, e.off), ("atom", "", "pointer", "")),
    "make_copy_atom": (lambda e: (fx.UniversalCopy32b(), fx.Float32), ("", "type")),
    "make_mma_atom": (lambda e: (fx.rocdl.MFMA(16, 16, 4, fx.Float32),), ("",)),
    "make_tiled_copy_A": (lambda e: (e.copy, e.tiled), ("atom", "")),
    "make_view": (lambda e: (e.p, e.L), ("negative, list, pointer, run-time int, wide int", "layout")),
    "make_rmem_tensor": (lambda e: (4, fx.Float32), ("layout", "type")),
    "memref_alloca": (lambda e: (fx.Float32, e.L), ("type", "layout")),
    "memref_load": (lambda e: (e.A, 3), ("tensor", "None, run-time int, wide int")),
    "memref_load_vec": (lambda e: (e.F,), ("tensor",)),
    "memref_store_vec": (lambda e: (1.0, e.F), ("float, negative, run-time float, vector, run-time int", "tensor")),
    "add_offset": (lambda e: (e.p, 3), ("tensor, pointer", "negative, run-time int, wide int")),
    "apply_swizzle": (lambda e: (e.lds, fx.Swizzle(2, 4, 3)), ("pointer", "")),
    "recast_iter": (lambda e: (fx.Int32, e.p), ("type", "pointer")),
    "inttoptr": (lambda e: (fx.PointerType(fx.Float32), fx.Int64(64)), ("", "negative, run-time int, wide int")),
    "ptrtoint": (lambda e: (e.p,), ("pointer",)),
    "to_llvm_ptr": (lambda e: (e.p, 1), ("pointer", "None")),
    "ptr_load": (lambda e: (e.p, fx.Float32, 2), ("pointer", "None, type", "")),
    "ptr_store": (lambda e: (1.0, e.p), ("float, negative, run-time float, vector, run-time int", "pointer")),
    "shared_memory": (lambda e: (fx.Float32, 64, 16), ("type", "", "")),
    "get_dyn_shared": (lambda e: (fx.Float32,), ("None, type",)),
    "assume": (lambda e: (e.t, 4), ("run-time int, wide int", "")),
    "shuffle_xor": (
        lambda e: (e.x, 1, 64),
        ("float, negative, run-time float, vector, run-time int, wide int", "run-time int", "None"),
    ),
    "readlane": (
        lambda e: (e.x, 3),
        ("float, negative, run-time float, vector, run-time int, wide int", "run-time int"),
    ),
    "wave_reduce": (
        lambda e: (e.x, "add", 64),
        ("float, negative, run-time float, vector, run-time int, wide int", "", "None"),
    ),
    "full": (
        lambda e: (4, 1.0, fx.Float32),
        ("", "float, negative, run-time float, run-time int, wide int", "None, type"),
    ),
    "select": (lambda e: (e.L, [0]), ("None, negative, layout, tensor, run-time int, wide int", "list")),
    "get": (lambda e: (e.L, 0), ("None, negative, layout, tensor, run-time int, wide int", "list")),
    "rocdl.make_buffer_ptr": (lambda e: (e.p, 64), ("pointer", "None, run-time int, wide int")),
    "rocdl.make_buffer_tensor": (lambda e: (e.M,), ("tensor",)),
    "rocdl.raw_ptr_buffer_load": (lambda e: (fx.Float32, e.buffer, 4, 4), ("type", "", "run-time int", "run-time int")),
    "rocdl.perm_b32": (lambda e: (e.t, e.t, e.t), ("negative, run-time int",) * 3),
    "rocdl.cvt_pk_f32_fp8": (lambda e: (e.t, False), ("negative, run-time int", "")),
    "rocdl.ds_bpermute": (
        lambda e: (e.t, e.x),
        ("negative, run-time int", "float, negative, run-time float, vector, run-time int, wide int"),
    ),
    "rocdl.sched_group_barrier": (lambda e: (8, 1, 0), ("", "", "")),
    "rocdl.sched_barrier": (lambda e: (0,), ("",)),
    "rocdl.iglp_opt": (lambda e: (1,), ("",)),
    "rocdl.s_waitcnt": (lambda e: (0,), ("None",)),
    "rocdl.s_setprio": (lambda e: (1,), ("",)),
    "rocdl.buffer_load_to_lds": (
        lambda e: (e.buffer, e.lds, e.t * 4, 4, 0, 0),
        ("", "", "run-time int", "", "run-time int", ""),
    ),
    "rocdl.raw_ptr_buffer_atomic_fadd": (
        lambda e: (e.x, e.buffer, 4, 0),
        ("float, negative, run-time float, run-time int, wide int", "", "run-time int", "run-time int"),
    ),
    "rocdl.MFMA": (lambda e: (16, 16, 4, fx.Float32), ("", "", "", "type")),
    "rocdl.BufferCopy": (lambda e: (32, 0), ("", "str")),
    "UniversalCopy": (lambda e: (32,), ("",)),
    "UniversalFMA": (lambda e: (fx.Float32,), ("type",)),
    "atom_set_value": (
        lambda e: (fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32), "soffset", 3),
        ("", "dict", "negative, run-time int"),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_wrong_argument_among_right_ones_is_refused(name: str) -> None:
    found: Any = fx
    for part in name.split("."):
        found = getattr(found, part)
    right, takes = CALLS[name]
    assert outcome(lambda A: found(*right(Things(A)))) is None
    for i, also in enumerate(takes):
        wanted = {w for w in also.split(", ") if w}

        def taken(make: Callable[[Any], Any], i: int = i) -> bool:
            def call(A: Any) -> None:
                args = list(right(Things(A)))
                args[i] = make(A)
                found(*args)

            return outcome(call, name not in ("copy", "gemm")) is None

        assert {w for w, make in WRONG.items() if taken(make)} == wanted, i


#: One of every kind that has methods.
OBJECTS: dict[str, Callable[[Things], Any]] = {
    "tensor": lambda e: e.M,
    "fragment": lambda e: e.F,
    "coordinates": lambda e: fx.make_identity_tensor((4, 4)),
    "pointer": lambda e: e.p,
    "number": lambda e: e.t,
    "float": lambda e: e.x,
    "vector": lambda e: fx.full(4, e.x),
    "layout": lambda e: e.L,
    "composed": lambda e: fx.make_composed_layout(fx.Swizzle(2, 3, 3), e.L),
    "tile": lambda e: fx.make_tile(4, 4),
    "copy atom": lambda e: e.copy,
    "mma atom": lambda e: e.mma,
    "tiled copy": lambda e: e.tiled_copy,
    "thread copy": lambda e: e.tiled_copy.get_slice(e.t),
    "tiled mma": lambda e: e.tiled,
    "thread mma": lambda e: e.tiled.get_slice(e.t),
    "storage": lambda e: e.storage,
    "array storage": lambda e: e.storage.b,
    "allocator": lambda e: fx.SharedAllocator(static=False),
    "arena": lambda e: fx.Arena(),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_a_method_takes_its_arguments_or_refuses_them_at_the_authors_line(kind: str) -> None:
    names: list[str] = []

    def collect(A: Any) -> None:
        held = type(OBJECTS[kind](Things(A)))
        names.extend(n for n in dir(held) if n[0] != "_" and callable(getattr(held, n)))

    assert outcome(collect, True) is None
    for name in names:
        for wrong in ("str", "float", "layout", "tensor"):

            def call(A: Any, name: str = name, wrong: str = wrong) -> None:
                method = getattr(OBJECTS[kind](Things(A)), name)
                method(*[WRONG[wrong](A)] * max(required(method), 1))

            outcome(call, True)
        outcome(lambda A, name=name: getattr(OBJECTS[kind](Things(A)), name)(*[1] * 30), True)  # type: ignore[misc]
        assert outcome(lambda A, name=name: getattr(OBJECTS[kind](Things(A)), name)(nonsense=1), True) is not None  # type: ignore[misc]


@pytest.mark.parametrize("kind", OBJECTS)
def test_operators_with_what_they_do_not_take_are_refused_at_the_authors_line(kind: str) -> None:
    ways = {
        "add": lambda x, y: x + y, "radd": lambda x, y: y + x, "mul": lambda x, y: x * y, "sub": lambda x, y: x - y,
        "div": lambda x, y: x / y, "floordiv": lambda x, y: x // y, "and": lambda x, y: x & y, "lt": lambda x, y: x < y,
        "eq": lambda x, y: x == y, "shift": lambda x, y: x << y, "pow": lambda x, y: x**y, "get": lambda x, y: x[y],
        "call": lambda x, y: x(y), "in": lambda x, y: y in x, "matmul": lambda x, y: x @ y, "neg": lambda x, y: -x,
        "invert": lambda x, y: ~x, "iterate": lambda x, y: list(zip(range(9), x)), "float": lambda x, y: float(x),
    }  # fmt: skip
    for use in ways.values():
        for wrong in ("None", "str", "array", "tensor"):
            if wrong == "array" and kind in ("number", "float"):
                continue  # NumPy makes arrays of numbers of the language

            def call(A: Any, use: Any = use, wrong: str = wrong) -> None:
                use(OBJECTS[kind](Things(A)), WRONG[wrong](A))

            outcome(call, True)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda A: fx.rocdl.cdna4.cvt_sr_f32_to_bf16(A[0], A[1]), "rand is a Float32"),
        (lambda A: fx.rocdl.convert("cvt_pk_f32_fp8", A[0], False), "argument 0 of cvt_pk_f32_fp8 is a Float32"),
        (lambda A: fx.rocdl.perm_b32(A[0], 0, 0), "a word of packed bits is a Float32"),
    ],
)
def test_a_float_is_not_taken_for_a_word_of_bits(call: Callable[[Any], Any], said: str) -> None:
    @flyc.kernel(known_block_size=(64, 1, 1))
    def k(A: fx.Tensor):
        call(A)

    with pytest.raises(FlyError, match=rf"{said}\n  fix: .*\.bitcast\(fx\.Int32\) for its bits"):
        k.trace(["f32[4096]"], "gfx950")


# --- what the net says ----------------------------------------------------------------------------


def said(fn: Callable[..., Any]) -> str:
    with pytest.raises(FlyError) as caught:
        flyc.kernel(fn).trace(["f32[4,8]", fx.Int32], "gfx942")
    return str(caught.value)


def here(fn: Callable[..., Any], text: str) -> str:
    lines, first = inspect.getsourcelines(fn)
    (at,) = [i for i, line in enumerate(lines) if text in line]
    return f"{__file__}:{first + at}: "


def test_an_error_from_inside_quotes_the_expression_the_arguments_and_the_function() -> None:
    def k(A: fx.Tensor, n: fx.Int32):
        fx.tiled_copy_retile("tiled", A)

    message = said(k)
    place, rest = message.split(": ", 1)
    assert f"{place}: " == here(k, "fx.tiled_copy_retile")
    assert rest.startswith("fx.tiled_copy_retile(\"tiled\", A) cannot take tiled='tiled', fragment=Tensor(Float32, ")
    assert "(AttributeError)\n  fix: tiled_copy_retile(tiled, fragment): A fragment in the order a tiled" in message


def test_the_net_holds_inside_branches_loops_and_helpers() -> None:
    def helper(A):
        return fx.rocdl.make_buffer_ptr(A.iter, object())

    def k(A: fx.Tensor, n: fx.Int32):
        if n > 3:
            for _ in range(n):
                helper(A)

    assert said(k).startswith(f"{here(helper, 'return')[:-2]} (called from {here(k, 'helper(A)')[:-2]}): ")


def test_a_wrong_count_of_arguments_shows_the_call() -> None:
    def few(A: fx.Tensor, n: fx.Int32):
        fx.gemm(A, A)

    def unknown(A: fx.Tensor, n: fx.Int32):
        fx.make_view(A.iter, stride=3)

    message = said(few)
    assert message.startswith(here(few, "fx.gemm")) and "missing 3 required positional arguments" in message
    assert "fix: call it as gemm(atom, d, a, b, c, *, traversal_order, traversal_layout, **state)" in message
    assert "unexpected keyword argument 'stride'" in said(unknown) and "make_view(iterator, layout)" in said(unknown)


def test_a_name_that_does_not_exist_comes_with_those_that_do() -> None:
    def module(A: fx.Tensor, n: fx.Int32):
        fx.make_layot(4, 1)

    def attribute(A: fx.Tensor, n: fx.Int32):
        return A.shapes

    def absent(A: fx.Tensor, n: fx.Int32):
        fx.rocdl.BufferLDST128b()

    assert said(module).startswith(here(module, "make_layot")) and "did you mean make_layout" in said(module)
    assert "no attribute 'shapes'" in said(attribute) and "did you mean shape" in said(attribute)
    assert said(absent).startswith(f"{here(absent, 'BufferLDST')}fx.rocdl has no 'BufferLDST128b'")
    assert "fix: use BufferCopy128b" in said(absent)


def test_python_on_our_objects_is_named() -> None:
    def add(A: fx.Tensor, n: fx.Int32):
        return A + 1

    def unpack(A: fx.Tensor, n: fx.Int32):
        a, b, c = A.shape
        A[0, 0] = a + b + c

    assert said(add).startswith(here(add, "return A + 1")) and "unsupported operand type(s) for +: 'Tensor'" in said(
        add
    )
    assert "its .load()" in said(add)
    assert said(unpack).startswith(here(unpack, "a, b, c =")) and "as many names as there are values" in said(unpack)


class Mine:
    """An object of the author's."""


def test_errors_of_the_authors_own_python_keep_their_type() -> None:
    def attribute(A: fx.Tensor, n: fx.Int32):
        return Mine().nothing

    def raised(A: fx.Tensor, n: fx.Int32):
        raise TypeError("'Tensor' is what I raise")

    def key(A: fx.Tensor, n: fx.Int32):
        return {}["a"]

    def library(A: fx.Tensor, n: fx.Int32):
        inspect.signature(3)

    for fn, kind in ((attribute, AttributeError), (raised, TypeError), (key, KeyError), (library, TypeError)):
        with pytest.raises(kind) as caught:
            flyc.kernel(fn).trace(["f32[4,8]", fx.Int32], "gfx942")
        assert type(caught.value) is kind


def test_the_first_error_stays_as_the_cause() -> None:
    def k(A: fx.Tensor, n: fx.Int32):
        fx.tiled_copy_retile(3, A)

    with pytest.raises(FlyError) as caught:
        flyc.kernel(k).trace(["f32[4,8]", fx.Int32], "gfx942")
    assert isinstance(caught.value.__cause__, AttributeError)


# --- what Python would do in silence, and what NumPy's users write --------------------------------


def stands_alone(A: fx.Tensor, n: fx.Int32):
    fx.barrier  # noqa: B018


def equal_tensors(A: fx.Tensor, n: fx.Int32):
    if A.iter == A:
        A[0, 0] = 1.0


def unequal_to_a_number(A: fx.Tensor, n: fx.Int32):
    if A.iter != 1:
        A[0, 0] = 1.0


def equal_to_text(A: fx.Tensor, n: fx.Int32):
    if n == "a":
        A[0, 0] = 1.0


def boolean_index(A: fx.Tensor, n: fx.Int32):
    A[0, 0] = A[n > 3, 0]


def slice_index(A: fx.Tensor, n: fx.Int32):
    A[0, 0:4] = 1.0


def whole_index(A: fx.Tensor, n: fx.Int32):
    A[...] = 1.0


def of_numpy(A: fx.Tensor, n: fx.Int32):
    A[0, 0] = np.exp(A[0, 0])


HOST = np.zeros(4)


def host_array(A: fx.Tensor, n: fx.Int32):
    A[0, 0] = HOST[n]


def length(A: fx.Tensor, n: fx.Int32):
    A[0, 0] = len(A)


def transposed(A: fx.Tensor, n: fx.Int32):
    A[0, 0] = A.T[0, 0]


def converted(A: fx.Tensor, n: fx.Int32):
    A[0, 0] = n.astype(fx.Float32)


def new_attribute(A: fx.Tensor, n: fx.Int32):
    A.more = 1


def deleted(A: fx.Tensor, n: fx.Int32):
    del A[0, 0]


def operation_for_atom(A: fx.Tensor, n: fx.Int32):
    fx.copy(fx.UniversalCopy32b(), A, A)


def thread_for_mma(A: fx.Tensor, n: fx.Int32):
    fx.gemm(fx.rocdl.MFMA(16, 16, 4, fx.Float32), A, A, A, A)


@pytest.mark.parametrize(
    ("fn", "text"),
    [
        (stands_alone, "fx.barrier stands alone and does nothing\n  fix: call it: fx.barrier()"),
        (equal_tensors, "compare elements, t[i] == x"),
        (unequal_to_a_number, "compare elements, t[i] == x"),
        (equal_to_text, "Int32 is compared with 'a'\n  fix: compare it with a number"),
        (boolean_index, "Boolean in a layout\n  fix: use an integer: .to(fx.Int32)"),
        (slice_index, "a slice in a coordinate\n  fix: None keeps a whole mode"),
        (whole_index, "... in a coordinate\n  fix: None keeps a whole mode"),
        (of_numpy, "use fx.math and the operators"),
        (host_array, "the array is in host memory: pass it to the kernel as a tensor argument"),
        (length, "use t.shape, or fx.size(t)"),
        (transposed, "make a view with the strides turned"),
        (converted, "use .to(fx.Float32)"),
        (new_attribute, "elements can be written, t[i] = x"),
        (deleted, "elements can be written, t[i] = x"),
        (operation_for_atom, "pass fx.make_copy_atom(op, dtype)"),
        (thread_for_mma, "pass fx.make_mma_atom(op)"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_habits_of_other_libraries_are_answered(fn: Callable[..., Any], text: str) -> None:
    message = said(fn)
    assert text in message and message.startswith(f"{__file__}:")


def test_a_tensor_is_equal_to_itself_and_a_key() -> None:
    def k(A: fx.Tensor, n: fx.Int32):
        assert A == A and A.iter is not None and (A != None) and {A: 1}[A] == 1  # noqa: E711

    flyc.kernel(k).trace(["f32[4,8]", fx.Int32], "gfx942")
