"""Control flow of kernels, run in the simulator against the same Python on plain numbers."""

from __future__ import annotations

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx

pytestmark = pytest.mark.sim

LANES = 64
COUNTS = [0, 1, 3, 64]


def compiled(kernel, *specs):
    return flyc.compile(kernel, *specs, arch="gfx942", stop_after="llvm")


def run(kernel, *args, out=np.int32):
    """What a kernel (out, arrays..., numbers...) writes; one workgroup of 64 lanes."""
    result = np.zeros(LANES, out)
    name = {np.int32: "i32", np.float32: "f32"}
    specs = [f"{name[a.dtype.type]}[?]" if isinstance(a, np.ndarray) else fx.Int32 for a in (result, *args)]
    compiled(kernel, *specs).simulate(result, *args, grid=1, block=LANES)
    return result


def lanes(f):
    return np.array([f(t) for t in range(LANES)], np.int32)


# --- if -------------------------------------------------------------------------------------------


@flyc.kernel
def nested_if(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    x = A[t]
    if x > n:
        if x % 2 == 0:
            y = x * 2
        else:
            y = x * 3
            x = x - 1
    elif x == n:
        y = A[0] + 100
    else:
        y = -x
        if t < 5:
            y = y + n
    C[t] = y + x


@pytest.mark.parametrize("n", [0, 7, 30])
def test_if_elif_else_nests_as_in_python(n):
    a = np.arange(LANES, dtype=np.int32) * 7 % 40

    def ref(t):
        x = int(a[t])
        if x > n:
            if x % 2 == 0:
                y = x * 2
            else:
                y = x * 3
                x = x - 1
        elif x == n:
            y = int(a[0]) + 100
        else:
            y = -x
            if t < 5:
                y = y + n
        return y + x

    assert (run(nested_if, a, n) == lanes(ref)).all()


@flyc.kernel
def store_in_branch(C: fx.Tensor):
    t = fx.thread_idx.x
    if t % 3 == 0:
        C[t] = t
    else:
        if t % 3 == 1:
            C[t] = -t


def test_a_branch_may_only_write_memory():
    assert (run(store_in_branch) == lanes(lambda t: (t, -t, 0)[t % 3])).all()


@flyc.kernel
def python_if(C: fx.Tensor, A: fx.Tensor, mode: fx.Constexpr[str]):
    t = fx.thread_idx.x
    if mode == "none":
        return
    names = []
    for word in ["a", "b", "c"]:
        if word == "c":
            break
        if mode != "both" and word == "b":
            continue
        names.append(word)
    total = len(names)
    if total > 1 and not mode.startswith("x"):
        C[t] = A[t] + total
    else:
        C[t] = A[t]


@pytest.mark.parametrize(("mode", "added"), [("both", 2), ("one", 0), ("none", None)])
def test_python_conditions_and_loops_run_while_tracing(mode, added):
    c, a = np.zeros(LANES, np.int32), np.arange(LANES, dtype=np.int32)
    made = flyc.compile(python_if, "i32[?]", "i32[?]", arch="gfx942", constants={"mode": mode}, stop_after="llvm")
    assert "scf." not in made.fly_ir
    made.simulate(c, a, grid=1, block=LANES)
    assert (c == (0 if added is None else a + added)).all()


@flyc.kernel
def branch_keeps_vector(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    piece = fx.make_view(A.iter + t // 16 * 4, fx.make_layout(4, 1))
    v = piece.load()
    if t % 2 == n:
        v = v * 2
    else:
        v = piece.load() + 1
    C[t] = v[0] + v[1] + v[2] + v[3]


def test_a_branch_hands_on_a_whole_vector():
    a = np.arange(LANES, dtype=np.int32)
    got = run(branch_keeps_vector, a, 1)
    sums = a[:16].reshape(4, 4).sum(axis=1)
    assert (got == lanes(lambda t: sums[t // 16] * 2 if t % 2 == 1 else sums[t // 16] + 4)).all()
    assert "phi <4 x i32>" in compiled(branch_keeps_vector, "i32[?]", "i32[?]", fx.Int32).llvm_ir


# --- expressions ----------------------------------------------------------------------------------


@flyc.kernel
def expressions(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    x = A[t]
    a = x if x > n else -x
    b = A[x] if 0 <= x < 64 else 1000
    c = 1 if not x > n else 0
    d = (x > 3 and x < 20) or x == 33
    e = 1 if 1 < x <= t != 7 else 0
    C[t] = a + b + c * 10 + fx.Int32(d) * 100 + e * 1000


@pytest.mark.parametrize("n", [0, 11])
def test_conditional_expressions_boolean_operators_and_chains_are_those_of_python(n):
    a = (np.arange(LANES, dtype=np.int32) * 37 % 101) - 20
    a[a >= 64] += 100000  # far outside: only short circuit keeps the load from it

    def ref(t):
        x = int(a[t])
        first = x if x > n else -x
        b = int(a[x]) if 0 <= x < 64 else 1000
        c = 1 if not x > n else 0
        d = (x > 3 and x < 20) or x == 33
        e = 1 if 1 < x <= t != 7 else 0
        return first + b + c * 10 + d * 100 + e * 1000

    assert (run(expressions, a, n) == lanes(ref)).all()


@flyc.kernel
def short_circuit(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    both = t < n and A[t] > 5
    either = t >= n or A[t] > 5
    C[t] = fx.Int32(both) + 2 * fx.Int32(either)


def test_and_and_or_evaluate_the_second_operand_only_where_it_decides():
    a = np.arange(10, dtype=np.int32)  # lanes from 10 on may not read it
    got = run(short_circuit, a, 10)
    assert (got == lanes(lambda t: int(t < 10 and a[t] > 5) + 2 * int(t >= 10 or a[t] > 5))).all()


@flyc.kernel
def number_and_or(C: fx.Tensor, A: fx.Tensor):
    t = fx.thread_idx.x
    x = A[t]
    C[t] = (x or 7) + 100 * (x and 5)


def test_and_and_or_of_numbers_give_an_operand_as_in_python():
    a = np.arange(LANES, dtype=np.int32) % 3
    assert (run(number_and_or, a) == lanes(lambda t: int(a[t] or 7) + 100 * int(a[t] and 5))).all()


def test_small_pure_branches_become_selects():
    @flyc.kernel
    def pick(C: fx.Tensor, n: fx.Int32):
        t = fx.thread_idx.x
        y = t
        if t < n:
            y = n * 2
        C[t] = y if y > 3 and t != 9 else 0

    text = compiled(pick, "i32[?]", fx.Int32).llvm_ir
    assert "br i1" not in text and text.count("select") == 2
    c = np.zeros(LANES, np.int32)
    compiled(pick, "i32[?]", fx.Int32).simulate(c, 5, grid=1, block=LANES)
    assert (c == lanes(lambda t: 0 if t == 9 or (10 if t < 5 else t) <= 3 else 10 if t < 5 else t)).all()


@flyc.kernel
def guarded(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    x = A[t]
    bit = x < 32 and (n << x) & 4 != 0
    quotient = n // x if x != 0 else -1
    C[t] = fx.Int32(bit) + 10 * quotient


def test_what_a_condition_guards_does_not_reach_lanes_where_it_fails():
    a = np.arange(LANES, dtype=np.int32)
    assert (run(guarded, a, 5) == lanes(lambda t: int(t < 32 and (5 << t) & 4 != 0) + 10 * (5 // t if t else -1))).all()
    text = compiled(guarded, "i32[?]", "i32[?]", fx.Int32).llvm_ir
    # A shift by too much is poison: a select drops it, `and` would not.
    assert "select i1" in text and "sdiv" in text


# --- for ------------------------------------------------------------------------------------------


@flyc.kernel
def for_sum(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    total = 0
    last = -1
    for i in range(n):
        total = total * 3 + A[i] + t
        last = i
    C[t] = total + last


@flyc.kernel
def unrolled_sum(C: fx.Tensor, A: fx.Tensor, n: fx.Constexpr[int]):
    t = fx.thread_idx.x
    total = fx.Int32(0)
    last = -1
    for i in fx.range_constexpr(n):
        total = total * 3 + A[i] + t
        last = i
    C[t] = total + last


@pytest.mark.parametrize("n", COUNTS)
def test_a_traced_loop_equals_the_unrolled_one(n):
    a = np.arange(LANES, dtype=np.int32) * 5 - 20
    c = np.zeros(LANES, np.int32)
    made = flyc.compile(unrolled_sum, "i32[?]", "i32[?]", arch="gfx942", constants={"n": n}, stop_after="llvm")
    made.simulate(c, a, grid=1, block=LANES)
    assert "scf.for" not in made.fly_ir
    assert (run(for_sum, a, n) == c).all()
    if n == 0:
        assert (c == -1).all()


@flyc.kernel
def bounds(C: fx.Tensor, low: fx.Int32, high: fx.Int32, step: fx.Constexpr[int]):
    t = fx.thread_idx.x
    seen = 1
    for i in range(low, high, step):
        seen = seen * 7 + i
    C[t] = seen


@pytest.mark.parametrize(
    ("low", "high", "step"), [(0, 10, 3), (5, 5, 1), (7, 2, 1), (-4, 9, 4), (10, 0, -3), (3, 9, -1)]
)
def test_bounds_and_steps_are_those_of_range(low, high, step):
    made = flyc.compile(
        bounds, "i32[?]", fx.Int32, fx.Int32, arch="gfx942", constants={"step": step}, stop_after="llvm"
    )
    c = np.zeros(LANES, np.int32)
    made.simulate(c, low, high, grid=1, block=LANES)
    seen = 1
    for i in range(low, high, step):
        seen = seen * 7 + i
    assert (c == np.int32(((seen + (1 << 31)) % (1 << 32)) - (1 << 31))).all()


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"unroll": 4}, "llvm.loop.unroll.count"),
        ({"unroll": 1}, "llvm.loop.unroll.disable"),
        ({"unroll_full": True}, "llvm.loop.unroll.enable"),
        ({"unroll": -1}, None),
    ],
)
def test_unroll_hints_make_a_loop_and_reach_llvm(keywords, says):
    @flyc.kernel
    def k(C: fx.Tensor):
        total = fx.thread_idx.x
        for i in range(0, 8, **keywords):
            total = total * 3 + i
        C[fx.thread_idx.x] = total

    made = compiled(k, "i32[?]")
    assert "scf.for" in made.fly_ir
    assert says in made.llvm_ir if says else "llvm.loop" not in made.llvm_ir

    def ref(t):
        for i in range(8):
            t = t * 3 + i
        return t

    assert (run(k) == lanes(ref)).all()


def test_a_number_of_the_language_is_a_traced_bound_even_if_it_is_known():
    @flyc.kernel
    def k(C: fx.Tensor):
        total = fx.Int64(0)
        for i in range(fx.Int64(5)):
            total = total + i
        for i in range(3):
            total = total + C.shape[0] if isinstance(i, fx.Numeric) else total
        C[fx.thread_idx.x] = total.to(fx.Int32)

    text = compiled(k, "i32[?]").fly_ir
    assert text.count("scf.for") == 1 and ": i64 {" in text
    assert (run(k) == 10).all()


@flyc.kernel
def index_survives(C: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    i = fx.Int32(-5)
    for i in range(2, n):
        C[t] = i
    C[t] = i


@pytest.mark.parametrize(("n", "last"), [(0, -5), (2, -5), (9, 8)])
def test_the_last_index_survives_a_loop_over_a_variable_that_existed(n, last):
    assert (run(index_survives, n) == last).all()


@flyc.kernel
def deep(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    acc = fx.Int32(0)
    count = 0
    j = t % 4
    while j < n:
        for i in range(j):
            if A[i] % 2 == 0:
                acc += A[i]
            else:
                acc -= i
                if acc < -10:
                    acc = acc + 100
                    count += 1
        j += 1
    C[t] = acc * 10 + count


@pytest.mark.parametrize("n", [0, 1, 5, 12])
def test_if_in_for_in_while(n):
    a = (np.arange(LANES, dtype=np.int32) * 7919) % 23

    def ref(t):
        acc, count, j = 0, 0, t % 4
        while j < n:
            for i in range(j):
                if a[i] % 2 == 0:
                    acc += int(a[i])
                else:
                    acc -= i
                    if acc < -10:
                        acc, count = acc + 100, count + 1
            j += 1
        return acc * 10 + count

    assert (run(deep, a, n) == lanes(ref)).all()


@flyc.kernel
def inner_assigns(C: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    b = fx.Int32(-1)
    for i in range(n):
        for j in range((t + i) & 1):
            b = i * 10 + j
        if i == t:
            b = b + 1000
    C[t] = b


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_variable_that_only_some_paths_assign_keeps_its_last_value(n):
    def ref(t):
        b = -1
        for i in range(n):
            for j in range((t + i) & 1):
                b = i * 10 + j
            if i == t:
                b += 1000
        return b

    assert (run(inner_assigns, n) == lanes(ref)).all()


class Tally:
    """Counts how often it is touched; slots hide it from the tracer, which would put it back."""

    __slots__ = ("count",)

    def __init__(self):
        self.count = 0


def test_a_variable_of_a_python_loop_in_the_body_costs_no_second_trace():
    tally = Tally()

    @flyc.kernel
    def k(C: fx.Tensor, n: fx.Int32):
        pieces = [fx.make_rmem_tensor(1, fx.Int32) for _ in range(2)]
        for i, piece in enumerate(pieces):
            piece.fill(i)
        for _ in range(n):
            tally.count += 1
            for i, piece in enumerate(pieces):
                piece.fill(piece[0] + i + 1)
        C[fx.thread_idx.x] = pieces[0][0] + 100 * pieces[1][0]

    assert (run(k, 3) == 3 + 100 * 7).all()
    assert tally.count == 1


@flyc.kernel
def empty_python_loop(C: fx.Tensor, A: fx.Tensor, n: fx.Int32, things: fx.Constexpr[tuple]):
    y = A[0]
    z = A[1]
    total = fx.Int32(0)
    for i in range(n):
        for y in things:
            z = y * 100
        total += y + z
        y = i * 10
    C[fx.thread_idx.x] = total * 1000 + y + z


@pytest.mark.parametrize("things", [(), (2, 5)])
def test_a_python_loop_without_an_iteration_leaves_the_value_of_the_iteration_before(things):
    a, c = np.array([3, 4], np.int32), np.zeros(LANES, np.int32)
    made = flyc.compile(
        empty_python_loop, "i32[?]", "i32[?]", fx.Int32, arch="gfx942", constants={"things": things}, stop_after="llvm"
    )
    made.simulate(c, a, 3, grid=1, block=LANES)
    y, z, total = 3, 4, 0
    for i in range(3):
        for y in things:
            z = y * 100
        total += y + z
        y = i * 10
    assert (c == total * 1000 + y + z).all()


# --- while ----------------------------------------------------------------------------------------


@flyc.kernel
def collatz(C: fx.Tensor):
    t = fx.thread_idx.x
    x, steps = t + 1, 0
    while x != 1 and steps < 1000:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
    C[t] = steps


def test_a_while_loop_runs_for_each_lane_its_own_count():
    def ref(t):
        x, steps = t + 1, 0
        while x != 1:
            x, steps = x // 2 if x % 2 == 0 else 3 * x + 1, steps + 1
        return steps

    assert (run(collatz) == lanes(ref)).all()


@flyc.kernel
def reads_in_condition(C: fx.Tensor, A: fx.Tensor):
    t = fx.thread_idx.x
    i = t
    while A[i] != 0:
        i = A[i]
    C[t] = i


def test_a_condition_that_reads_memory_is_evaluated_in_the_loop_alone():
    a = np.maximum(np.arange(LANES, dtype=np.int32) - 3, 0)

    def ref(t):
        while a[t]:
            t = a[t]
        return t

    assert (run(reads_in_condition, a) == lanes(ref)).all()
    text = compiled(reads_in_condition, "i32[?]", "i32[?]").fly_ir
    assert text.count("fly.ptr.load") == 2 and text.index("scf.while") < text.index("fly.ptr.load")


@flyc.kernel
def python_then_traced(C: fx.Tensor, A: fx.Tensor):
    t = fx.thread_idx.x
    i = 0
    total = A[t]
    while i < 3:
        total += i
        i += 1
    while i < 5 + A[0]:
        total += 10
        i = i + A[1]
    C[t] = total


def test_a_while_starts_as_python_until_its_condition_is_traced():
    a = np.arange(2, 2 + LANES, dtype=np.int32)
    assert (run(python_then_traced, a) == a + 3 + 20).all()
    text = compiled(python_then_traced, "i32[?]", "i32[?]").fly_ir
    assert text.count("scf.while") == 1


# --- what is carried ------------------------------------------------------------------------------


@flyc.kernel
def vector_sum(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    row = fx.make_view(A.iter, fx.make_layout((2, 2), (1, 2)))
    acc = row.load()
    shape = acc.shape
    for i in range(n):
        acc = acc + row.load() * i
    assert acc.shape == shape == (2, 2)
    C[t] = acc[0] + acc[1] * 10 + acc[2] * 100 + acc[3] * 1000
    fx.make_view(C.iter, fx.make_layout((2, 2), (1, 2))).store(acc)


def test_a_vector_is_carried_whole_with_its_shape():
    a = np.arange(1, 5, dtype=np.int32)
    text = compiled(vector_sum, "i32[?]", "i32[?]", fx.Int32).llvm_ir
    assert text.count("phi <4 x i32>") >= 1 and "phi i32" in text
    assert (run(vector_sum, a, 4)[:4] == a * 7).all()


@flyc.kernel
def containers(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    pair = (A[t], t)
    accs = [fx.Int32(0), fx.Int32(1), fx.Int32(2)]
    book = {"sum": fx.Int32(0), "unit": 4, "name": "book", "inner": [fx.Int32(7)]}
    for i in range(n):
        pair = (pair[1], pair[0] + i)
        accs = [acc * 2 + i for acc in accs]
        book["sum"] = book["sum"] + accs[1]
        book["inner"][0] += book["unit"]
    C[t] = pair[0] + pair[1] * 3 + accs[0] + accs[2] + book["sum"] + book["inner"][0]


@pytest.mark.parametrize("n", [*COUNTS[:3], 9])
def test_tuples_lists_and_dicts_are_carried(n):
    a = np.arange(LANES, dtype=np.int32) * 3

    def ref(t):
        pair, accs, total, inner = (int(a[t]), t), [0, 1, 2], 0, 7
        for i in range(n):
            pair = (pair[1], pair[0] + i)
            accs = [acc * 2 + i for acc in accs]
            total += accs[1]
            inner += 4
        return pair[0] + pair[1] * 3 + accs[0] + accs[2] + total + inner

    assert (run(containers, a, n) == lanes(ref)).all()


@flyc.kernel
def dict_in_branch(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    d = {"a": A[t], "b": t, "keep": 3}
    same = d
    if t < n:
        d["a"] = d["a"] + 100
    else:
        d["b"] = d["b"] * 2
    C[t] = same["a"] + d["b"] * 1000 + d["keep"]


def test_a_dict_changed_in_one_branch_does_not_leak_into_the_other():
    a = np.arange(LANES, dtype=np.int32)
    got = run(dict_in_branch, a, 20)
    assert (got == lanes(lambda t: (a[t] + 100 if t < 20 else a[t]) + (t if t < 20 else 2 * t) * 1000 + 3)).all()


class Counter:
    """An object of the author's with state."""

    def __init__(self, start):
        self.value = start
        self.step = 2

    def add(self, x):
        if x % 2 == 0:
            self.value = self.value + x * self.step
        else:
            self.value = self.value - 1


@flyc.kernel
def object_state(C: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    counter = Counter(fx.Int32(5))
    for i in range(n):
        counter.add(i + t)
    C[t] = counter.value + counter.step


def test_attributes_of_the_authors_objects_are_carried_and_methods_are_rewritten():
    def ref(t):
        value = 5
        for i in range(6):
            value += 2 * (i + t) if (i + t) % 2 == 0 else -1
        return value + 2

    assert (run(object_state, 6) == lanes(ref)).all()


class Pair:
    """A struct that takes part by the two methods."""

    def __init__(self, a, b, tag):
        self.a, self.b, self.tag = a, b, tag

    def __fly_flatten__(self):
        return [self.a, self.b]

    def __fly_unflatten__(self, parts):
        return Pair(*parts, self.tag)


@flyc.kernel
def struct_carry(C: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    p = Pair(fx.Int32(1), t, "tag")
    for i in range(n):
        p = Pair(p.b, p.a + i, p.tag)
    C[t] = p.a + p.b * 100 + len(p.tag)


def test_an_object_with_flatten_and_unflatten_is_carried():
    def ref(t):
        a, b = 1, t
        for i in range(5):
            a, b = b, a + i
        return a + b * 100 + 3

    assert (run(struct_carry, 5) == lanes(ref)).all()


@fx.struct
class Running:
    best: fx.Int32
    at: fx.Int32


@flyc.kernel
def struct_value(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    r = Running(best=A[0], at=0)
    for i in range(1, n):
        if A[i] > r.best + t - 5:
            r = r.replace(best=A[i], at=i)
    C[t] = r.best + 1000 * r.at


def test_a_struct_is_carried():
    a = np.array([3, 9, 4, 11, 2], np.int32)

    def ref(t):
        best, at = 3, 0
        for i in range(1, 5):
            if a[i] > best + t - 5:
                best, at = int(a[i]), i
        return best + 1000 * at

    assert (run(struct_value, a, 5) == lanes(ref)).all()


@flyc.kernel
def pointer_walk(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    p = A.iter + t
    view = fx.make_view(A.iter, fx.make_layout(2, 1))
    total = fx.Int32(0)
    for _ in range(n):
        total += p[0] + view[1]
        p = p + 1
        view = fx.make_view(view.iter + 2, view.layout)
    C[t] = total


def test_pointers_and_tensors_are_carried():
    a = np.arange(200, dtype=np.int32) ** 2
    assert (run(pointer_walk, a, 5) == lanes(lambda t: sum(int(a[t + i] + a[2 * i + 1]) for i in range(5)))).all()


@flyc.kernel
def strides_of_two_alignments(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    p = A.iter
    total = fx.Int32(0)
    for i in range(n):
        total += p[0]
        p = p + 4
        if i == 1:
            p = p + 2
        p = p + 2 if t > 3 else p + 6
    C[t] = total + (p - 1)[0] if n > 0 else 0


def test_a_carried_pointer_keeps_the_weakest_alignment_of_its_steps():
    a = np.arange(200, dtype=np.int32) * 3

    def ref(t):
        p, total = 0, 0
        for i in range(4):
            total += int(a[p])
            p += 4 + (2 if i == 1 else 0) + (2 if t > 3 else 6)
        return total + int(a[p - 1])

    c = np.zeros(LANES, np.int32)
    made = compiled(strides_of_two_alignments, "i32[?]", "i32[?]:(1){align=16}", fx.Int32)
    made.simulate(c, a, 4, grid=1, block=LANES)
    assert (c == lanes(ref)).all()


def test_a_carried_counter_keeps_what_it_is_a_multiple_of():
    @flyc.kernel
    def k(C: fx.Tensor, A: fx.Tensor, n: fx.Int32, odd: fx.Int32):
        t = fx.thread_idx.x
        offset, other = 0, odd
        atom = fx.make_copy_atom(fx.UniversalCopy(128), fx.Int32)
        r = fx.make_rmem_tensor(4, fx.Int32)
        total = fx.Int32(0)
        four = fx.make_layout(4, 1)
        while offset < n:
            fx.copy(atom, fx.make_view(A.iter + offset, four), r)
            total += r[0] + r[3] + other
            offset += 8
            other += 8
        C[t] = total

    made = compiled(k, "i32[?]", "i32[?]:(1){align=16}", fx.Int32, fx.Int32)
    assert "load <4 x i32>" in made.llvm_ir and "align 16" in made.llvm_ir
    a, c = np.arange(64, dtype=np.int32), np.zeros(LANES, np.int32)
    made.simulate(c, a, 24, 3, grid=1, block=LANES)
    assert (c == sum(a[i] + a[i + 3] + 3 + i for i in (0, 8, 16))).all()


def test_a_counter_that_loses_its_multiple_in_the_body_is_no_multiple():
    @flyc.kernel
    def k(C: fx.Tensor, n: fx.Int32):
        i, total = 0, 0
        while i < n:
            total = total * 2 + i % 8
            i = i + (8 if i % 16 == 0 else 3)
        C[fx.thread_idx.x] = total

    i = total = 0
    while i < 40:
        total, i = total * 2 + i % 8, i + (8 if i % 16 == 0 else 3)
    assert (run(k, 40) == total).all()


@flyc.kernel
def atom_state(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    source = fx.make_view(fx.rocdl.make_buffer_ptr(A.iter, fx.Int64(4 * 256)), fx.make_layout(64, 1))
    atom = fx.make_copy_atom(fx.rocdl.BufferCopy(32), fx.Int32)
    atom = atom.set_value("soffset", 0)
    registers = fx.make_rmem_tensor(1, fx.Int32)
    total = fx.Int32(0)
    one = fx.make_layout(1, 1)
    offset = 0
    for _ in range(n):
        fx.copy(atom, source.at(t, one), registers)
        total += registers[0]
        offset += 64
        atom = atom.set_value("soffset", offset)
    C[t] = total


@pytest.mark.parametrize("n", [0, 1, 3])
def test_an_atom_whose_state_changes_is_carried(n):
    a = np.arange(256, dtype=np.int32) * 3
    assert (run(atom_state, a, n) == lanes(lambda t: sum(int(a[t + 64 * i]) for i in range(n)))).all()


@flyc.kernel
def register_memory(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    r = fx.make_rmem_tensor(4, fx.Int32)
    r.fill(1)
    for i in range(n):
        if i % 2 == 0:
            r.store(r.load() * 2)
        else:
            r[1] = r[1] + A[i]
    C[t] = r[0] + r[1] * 100


def test_register_memory_written_in_regions_becomes_values():
    a = np.arange(LANES, dtype=np.int32)
    x, y = 1, 1
    for i in range(5):
        x, y = (x * 2, y * 2) if i % 2 == 0 else (x, y + i)
    assert (run(register_memory, a, 5) == x + 100 * y).all()
    assert "alloca" not in compiled(register_memory, "i32[?]", "i32[?]", fx.Int32).ssa_ir


# --- range(init=) ---------------------------------------------------------------------------------


@flyc.kernel
def init_yield(C: fx.Tensor, A: fx.Tensor, n: fx.Constexpr[int], m: fx.Int32):
    t = fx.thread_idx.x
    for i, state in range(0, n, init=[A[t], 1]):
        total, factor = state
        results = yield [total + i * factor, factor * 2]
    for i, (x, y) in range(m, init=[results[0], results[1]]):
        x = x + y
        y = y + i
    C[t] = x * 100 + y


@pytest.mark.parametrize(("n", "m"), [(0, 0), (4, 0), (4, 3)])
def test_init_is_carried_whatever_the_bounds_are(n, m):
    a = np.arange(LANES, dtype=np.int32)
    made = flyc.compile(init_yield, "i32[?]", "i32[?]", fx.Int32, arch="gfx942", constants={"n": n}, stop_after="llvm")
    assert made.fly_ir.count("scf.for") == 2
    c = np.zeros(LANES, np.int32)
    made.simulate(c, a, m, grid=1, block=LANES)

    def ref(t):
        x, y = int(a[t]), 1
        for i in range(n):
            x, y = x + i * y, y * 2
        for i in range(m):
            x = x + y
            y = y + i
        return x * 100 + y

    assert (c == lanes(ref)).all()


# --- helpers --------------------------------------------------------------------------------------

SCALE = 3


def clamp(x, low, high=20):
    if x < low:
        x = low
    elif x > high:
        x = high
    return x * SCALE


def factorial(n):
    return 1 if n == 0 else n * factorial(n - 1)


@flyc.kernel
def helpers(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    calls = []

    def inner(x):
        nonlocal t
        calls.append(1)
        y = x
        for i in range(n):
            if i < 2:
                y = y + t
        t = t + 0
        return y

    apply = [clamp, inner]
    v = apply[0](A[t], 5)
    w = apply[1](v)
    C[fx.thread_idx.x] = w + factorial(4) + len(calls)


def test_helpers_closures_and_recursion_are_rewritten():
    a = np.arange(LANES, dtype=np.int32)

    def ref(t):
        return min(max(int(a[t]), 5), 20) * 3 + 2 * t + 24 + 1

    assert (run(helpers, a, 7) == lanes(ref)).all()


@flyc.kernel
def closure_state(C: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    total, calls = t, fx.Int32(0)

    def add(x):
        nonlocal total, calls
        total = total + x
        calls += 1

    for i in range(n):
        if i % 2 == t % 2:
            add(i)
    C[t] = total + calls * 1000


def test_variables_that_a_called_function_assigns_are_carried():
    def ref(t):
        hits = [i for i in range(7) if i % 2 == t % 2]
        return t + sum(hits) + 1000 * len(hits)

    assert (run(closure_state, 7) == lanes(ref)).all()


@pytest.mark.llvm
@pytest.mark.parametrize("kernel", [deep, containers, vector_sum, atom_state, register_memory, collatz, pointer_walk])
def test_control_flow_compiles_without_scratch_or_spills(kernel):
    count = kernel.fn.__code__.co_argcount
    specs = ["i32[?]", "i32[?]", fx.Int32][:count] if count != 2 else ["i32[?]", fx.Int32]
    made = flyc.compile(kernel, *specs, arch="gfx942").code_object.kernels[kernel.name]
    assert (made.scratch_bytes, made.vgpr_spill_count, made.sgpr_spill_count) == (0, 0, 0)


@flyc.kernel
def far(C: fx.Tensor, start: fx.Int32, stop: fx.Int32, step: fx.Int32):
    count, by_constant = fx.Int32(0), fx.Int32(0)
    for _ in range(start, stop, step):
        count += 1
    for _ in range(start, stop, 1 << 29):
        by_constant += 1
    C[fx.thread_idx.x] = count * 100 + by_constant


@pytest.mark.parametrize("start", [-(2**31), -7, 0, 5, 2**31 - 3])
@pytest.mark.parametrize("stop", [0, 2**31 - 1])
@pytest.mark.parametrize("step", [2**28, 2**30, 2**31 - 1])
def test_a_loop_ends_where_its_next_index_would_wrap(start, stop, step):
    expected = len(range(start, stop, step)) * 100 + len(range(start, stop, 1 << 29))
    assert (run(far, start, stop, step) == expected).all()


@flyc.kernel
def by_tiles(C: fx.Tensor, start: fx.Int32, stop: fx.Int32, step: fx.Constexpr[int]):
    count, last = fx.Int32(0), fx.Int32(0)
    for i in range(start, stop, step):
        count += 1
        last = i
    C[0], C[1] = count, last


FIRST, LAST = -(2**31), 2**31 - 1
EDGES = [(LAST - 500, LAST), (LAST - 5000, LAST - 3), (LAST, LAST), (LAST, FIRST), (FIRST, FIRST + 9)]


def count_and_last(start, stop, step):
    result = np.zeros(2, np.int32)
    specs = "i32[?]", fx.Int32, fx.Int32
    made = flyc.compile(by_tiles, *specs, arch="gfx942", stop_after="llvm", constants={"step": step})
    made.simulate(result, start, stop, grid=1, block=1)
    return result.tolist()


@pytest.mark.parametrize("step", [1, 2, 3, 64, 4096, 4097, -1, -2, -3, -64, -4096, -4097])
def test_a_loop_near_the_ends_of_its_type_has_the_iterations_of_python(step):
    for start, stop in EDGES:
        if step < 0:
            start, stop = -1 - start, -1 - stop
        numbers = range(start, stop, step)
        if len(numbers) < 600:
            assert count_and_last(start, stop, step) == [len(numbers), numbers[-1] if numbers else 0], (start, stop)


def test_a_loop_over_the_whole_type_is_not_empty():
    assert count_and_last(LAST, FIRST, -(2**29)) == [8, LAST - 7 * 2**29]
    assert count_and_last(FIRST, LAST, 2**29) == [8, FIRST + 7 * 2**29]


def test_a_loop_to_a_multiple_of_its_step_asks_for_nothing_more():
    def text(spec):
        @flyc.kernel
        def k(A: fx.Tensor):
            for i in range(0, A.shape[0], 64):
                A[i] = i

        return flyc.compile(k, spec, arch="gfx942", stop_after="llvm").llvm_ir

    assert "icmp ne" in text("i32[?]") and "icmp ne" in text("i32[?{div=32}]")
    assert "icmp ne" not in text("i32[?{div=64}]")


def test_an_index_that_counts_down_by_tiles_keeps_its_alignment():
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        for i in range(64 * n, 0, -64):
            A[i] = 7

    text = flyc.compile(k, "i32[?]{align=16}", fx.Int32, arch="gfx942", stop_after="llvm").llvm_ir
    (store,) = (line for line in text.splitlines() if "store i32 7" in line)
    assert "align 16" in store


@flyc.kernel
def siblings(C: fx.Tensor, A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    x = fx.Int32(0)
    if t < n:
        x = A[t, 1]
    if t > n:
        x = A[t, 2]
    for i in range(n):
        x += A[i, 0]
    C[t] = x


def test_a_matrix_of_run_time_extents_is_read_in_branches_side_by_side():
    a, out = np.arange(LANES * 3, dtype=np.int32).reshape(LANES, 3), np.zeros(LANES, np.int32)
    compiled(siblings, "i32[?]", "i32[?,?]", fx.Int32).simulate(out, a, 7, grid=1, block=LANES)
    t = np.arange(LANES)
    assert (out == np.where(t < 7, a[:, 1], np.where(t > 7, a[:, 2], 0)) + a[:7, 0].sum()).all()


@pytest.mark.parametrize(("start", "stop"), [(0, 9), (9, 0), (0, 0)])
@pytest.mark.parametrize("step", [1, 2, 5, -1, -3, -(2**31 - 1)])
def test_a_run_time_step_counts_up_or_down(start, stop, step):
    result = np.zeros(2, np.int32)
    compiled(steps_at_run_time, "i32[?]", fx.Int32, fx.Int32, fx.Int32).simulate(result, start, stop, step, grid=1)
    numbers = range(start, stop, step)
    assert result.tolist() == [len(numbers), sum((k + 1) * i for k, i in enumerate(numbers))]


@pytest.mark.parametrize(("start", "stop"), [(0, 9), (9, 0)])
def test_a_run_time_step_of_zero_gives_no_iteration(start, stop):
    assert (run(far, start, stop, 0) == len(range(start, stop, 1 << 29))).all()


@flyc.kernel(known_block_size=(1, 1, 1))
def steps_at_run_time(C: fx.Tensor, start: fx.Int32, stop: fx.Int32, step: fx.Int32):
    count, total = fx.Int32(0), fx.Int32(0)
    for i in range(start, stop, step):
        count += 1
        total += count * i
    C[0], C[1] = count, total


@pytest.mark.parametrize("wide", [False, True])
def test_a_step_that_is_never_positive_counts_down_per_lane(wide):
    @flyc.kernel(known_block_size=(64, 1, 1))
    def k(C: fx.Tensor, n: fx.Int32):
        t = fx.thread_idx.x
        total, step = fx.Int32(0), -(t + 1)
        for i in range(n, -1, step.to(fx.Int64) if wide else step):
            total += i.to(fx.Int32) + 1
        C[t] = total

    want = lanes(lambda t: sum(i + 1 for i in range(70, -1, -(t + 1))))
    assert (run(k, 70) == want).all()


def test_a_stride_of_the_grid_costs_nothing():
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        for i in range(fx.thread_idx.x, n, fx.block_dim.x * fx.grid_dim.x):
            A[i] = 1

    text = flyc.compile(k, "i32[?]", fx.Int32, arch="gfx942", stop_after="llvm").llvm_ir
    assert "ashr" not in text and "xor" not in text
