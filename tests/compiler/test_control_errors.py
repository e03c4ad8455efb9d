"""What control flow cannot do: the author's line and what to write instead."""

from __future__ import annotations

import re

import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import TraceError

COUNT = 0


def error(fn, *specs, **constants):
    """The message of a kernel that takes (C, n)."""
    with pytest.raises(TraceError) as caught:
        flyc.kernel(fn).trace(specs or ["f32[?]", fx.Int32], "gfx942", constants)
    return str(caught.value)


def line_of(fn, text):
    """``file:line`` of the line of a function that holds a text."""
    import inspect

    lines, first = inspect.getsourcelines(fn)
    (at,) = [i for i, line in enumerate(lines) if text in line]
    return f"{fn.__code__.co_filename}:{first + at}"


def check(fn, at, *parts, **constants):
    message = error(fn, **constants)
    place = line_of(fn, at)
    assert message.startswith((f"{place}: ", f"{place} (called from {place.rpartition(':')[0]}:")), message
    for part in parts:
        assert part in message, message


def test_return_inside_a_traced_if():
    def k(C: fx.Tensor, n: fx.Int32):
        if n > 3:
            return
        C[0] = 1.0

    check(k, "if n > 3", "return inside an if", "return it once, at the end")


def test_return_inside_a_traced_if_of_a_helper():
    def helper(x):
        if x > 0:
            return 1
        return 2

    def k(C: fx.Tensor, n: fx.Int32):
        C[0] = helper(n)

    message = error(k)
    assert message.startswith(f"{line_of(helper, 'if x > 0')} (called from {line_of(k, 'helper(n)')}): return inside")


@pytest.mark.parametrize("way", ["break", "continue"])
def test_break_and_continue_inside_a_traced_loop(way):
    def with_break(C: fx.Tensor, n: fx.Int32):
        for i in range(n):
            if i == 2:
                break

    def with_continue(C: fx.Tensor, n: fx.Int32):
        for i in range(n):
            if i == 2:
                continue
            C[i] = 1.0

    fix = {"break": "loop with while", "continue": "opposite condition"}[way]
    fn = with_break if way == "break" else with_continue
    check(fn, "for i in", f"{way} inside a loop whose bounds are known only at run time", fix)


def test_break_inside_a_traced_if_of_a_python_loop():
    def k(C: fx.Tensor, n: fx.Int32):
        for i in fx.range_constexpr(4):
            if i == n:
                break

    check(k, "if i == n", "break inside an if whose condition is known only at run time", "fix: loop with while")


def test_break_inside_a_traced_while():
    def k(C: fx.Tensor, n: fx.Int32):
        while n > 0:
            break

    check(k, "while n > 0", "break inside a while", "put the condition into it")


def test_else_of_a_traced_loop():
    def with_while(C: fx.Tensor, n: fx.Int32):
        while n > 0:
            n = n - 1
        else:
            C[0] = 1.0

    def with_for(C: fx.Tensor, n: fx.Int32):
        for i in range(n):
            C[i] = 1.0
        else:
            C[0] = 1.0

    check(with_while, "while n > 0", "else of a while", "put the else block behind the loop")
    check(with_for, "for i in", "else of a loop", "put the else block behind the loop")


def test_a_name_given_a_value_in_one_branch_only():
    def k(C: fx.Tensor, n: fx.Int32):
        if n > 3:
            y = 1.0
        C[0] = y

    check(k, "C[0] = y", "y has no value here", "in one branch only of the if at", "in both branches")
    assert line_of(k, "if n > 3") in error(k)


def test_a_name_given_a_value_only_inside_a_loop():
    def k(C: fx.Tensor, n: fx.Int32):
        for _ in range(n):
            y = 1.0
        C[0] = y

    check(k, "C[0] = y", "y is given a value only inside the loop", "give y a value before the loop")


def test_such_a_name_may_be_used_inside_and_assigned_again():
    def k(C: fx.Tensor, n: fx.Int32):
        for i in range(n):
            y = fx.Float32(i)
            C[i] = y
        for i in range(n):
            y = fx.Int32(i)
            C[y] = 1.0
        y = 2.0
        C[0] = y

    flyc.kernel(k).trace(["f32[?]", fx.Int32], "gfx942")


@pytest.mark.parametrize("kind", ["if", "for", "while"])
def test_a_variable_that_is_none_before(kind):
    def with_if(C: fx.Tensor, n: fx.Int32):
        best = None
        if n > 3:
            best = fx.Float32(n)
        C[0] = best

    def with_for(C: fx.Tensor, n: fx.Int32):
        best = None
        for i in range(n):
            best = fx.Float32(i)
        C[0] = best

    def with_while(C: fx.Tensor, n: fx.Int32):
        best = None
        while n > 0:
            best = fx.Float32(n)
            n = n - 1
        C[0] = best

    fn = {"if": with_if, "for": with_for, "while": with_while}[kind]
    check(fn, "C[0] = best", "best has no value here", "None", "fx.Float32(0)", "fx.const_expr")


def test_a_type_that_changes_over_iterations():
    def k(C: fx.Tensor, n: fx.Int32):
        acc = 0
        for i in range(n):
            acc = acc + C[i]
        C[0] = acc

    check(k, "acc = acc + C[i]", "Int32(0) before the loop", "a run-time Float32 after an iteration", "fx.Float32(...)")


def test_a_vector_that_changes_its_length():
    def k(C: fx.Tensor, n: fx.Int32):
        acc = fx.make_view(C.iter, fx.make_layout(4, 1)).load()
        for _ in range(n):
            acc = fx.make_view(C.iter, fx.make_layout(2, 1)).load() + acc[0]
        C[0] = acc[0]

    check(k, "+ acc[0]", "a vector of 4 Float32 before the loop", "a vector of 2 Float32 after an iteration")


def test_different_types_in_the_branches():
    def k(C: fx.Tensor, n: fx.Int32):
        if n > 3:
            y = fx.Float32(n)
        else:
            y = n
        C[0] = y

    check(
        k, "C[0] = y", "a run-time Float32 in one branch and a run-time Int32 in the other", "convert both to one type"
    )


def test_compile_time_values_that_differ():
    def k(C: fx.Tensor, n: fx.Int32):
        kind = "a"
        if n > 3:
            kind = "b"
        C[0] = 1.0 if kind == "a" else 2.0

    check(k, "if kind ==", "'b' in one branch", "'a' in the other", "fx.const_expr")


def test_a_conditional_expression_of_two_kinds():
    def k(C: fx.Tensor, n: fx.Int32):
        x = C if n > 3 else None
        C[0] = x

    check(k, "x = C if", "None in the other", "const_expr")


def test_a_container_that_grows_in_one_branch():
    def k(C: fx.Tensor, n: fx.Int32):
        xs = [n]
        if n > 3:
            xs.append(n + 1)
        C[0] = xs[-1]

    check(k, "if n > 3", "xs has 2 elements after one branch", "1 elements after the other", "branches work on copies")


def test_a_key_that_only_one_branch_adds():
    def k(C: fx.Tensor, n: fx.Int32):
        d = {"a": n}
        if n > 3:
            C[0] = 1.0
        else:
            d["b"] = n
        C[0] = d["a"]

    check(k, "if n > 3", "the keys ['a'] after one branch", "['a', 'b']", "make a new one")


def test_a_container_that_grows_in_a_loop():
    def k(C: fx.Tensor, n: fx.Int32):
        xs = []
        for i in range(n):
            xs.append(i)

    check(k, "for i in", "xs has 0 elements before a traced loop and 1 elements", "fx.range_constexpr")


def test_an_element_that_changes_its_type_in_a_loop():
    def k(C: fx.Tensor, n: fx.Int32):
        xs = [0]
        for i in range(n):
            xs[0] = xs[0] + C[i]

    check(k, "for i in", "xs[0] is", "Float32 after an iteration", "convert both to one type")


def test_register_memory_that_changes_places():
    def k(C: fx.Tensor, n: fx.Int32):
        a, b = fx.make_rmem_tensor(4, fx.Float32), fx.make_rmem_tensor(4, fx.Float32)
        for _ in range(n):
            a, b = b, a
            b.fill(1.0)
        C[0] = 1.0

    check(k, "a, b = b, a", "register", "register memory cannot be chosen at run time")


def test_a_module_global_assigned_in_a_traced_branch():
    def k(C: fx.Tensor, n: fx.Int32):
        global COUNT
        if n > 3:
            COUNT = 2

    check(k, "if n > 3", "module global COUNT is assigned", "use a local variable")


def bump():
    global COUNT
    COUNT += 1


def test_a_module_global_assigned_by_a_function_that_is_called_in_a_traced_loop():
    def k(C: fx.Tensor, n: fx.Int32):
        for _ in range(n):
            bump()

    check(k, "for _ in", "module global COUNT is assigned inside a run-time loop")


def test_a_loop_bound_of_another_type():
    def k(C: fx.Tensor, n: fx.Int32):
        for _ in range(fx.Float32(n)):
            C[0] = 1.0

    check(k, "for _ in", "a loop bound of type Float32", ".to(fx.Int32)")


def test_a_tuple_of_loop_variables_needs_init():
    def k(C: fx.Tensor, n: fx.Int32):
        for i, j in range(n):
            C[i] = j

    check(k, "for i, j", "unpacking inside a loop", "range(..., init=[...])")


def test_yield_at_another_place_than_the_end_of_an_init_loop():
    def k(C: fx.Tensor, n: fx.Int32):
        for i, state in range(0, n, init=[1]):
            yield [state[0] + i]
            C[i] = 1.0

    message = error(k)
    assert "the kernel k is a generator" in message and "end of a range(..., init=[...]) loop only" in message


def test_step_zero():
    def k(C: fx.Tensor, n: fx.Int32):
        for _ in range(0, n, 0):
            C[0] = 1.0

    check(k, "for _ in", "step 0", "not zero")


def test_a_strange_unroll_count():
    def k(C: fx.Tensor, n: fx.Int32):
        for _ in range(0, n, unroll="x"):
            C[0] = 1.0

    check(k, "for _ in", "unroll='x'", "positive compile-time int")


def test_range_constexpr_and_const_expr_of_a_run_time_value():
    def loop(C: fx.Tensor, n: fx.Int32):
        for _ in fx.range_constexpr(n):
            C[0] = 1.0

    def condition(C: fx.Tensor, n: fx.Int32):
        if fx.const_expr(n > 3):
            C[0] = 1.0

    check(loop, "for _ in", "range_constexpr with a bound that is known only at run time", "use range(...)")
    check(condition, "if fx.const_expr", "const_expr of a run-time value", "leave const_expr out")


def test_the_carried_list_of_init_keeps_its_types():
    def k(C: fx.Tensor, n: fx.Int32):
        for i, state in range(0, 4, init=[fx.Int32(0)]):
            yield [state[0] + C[i]]

    check(k, "for i, state", "the list of range(init=...)", "after an iteration")


def test_conditions_in_lambdas_and_comprehensions_are_refused_by_the_guard():
    def in_lambda(C: fx.Tensor, n: fx.Int32):
        pick = lambda x: 1.0 if x > 3 else 2.0  # noqa: E731
        C[0] = pick(n)

    def in_comprehension(C: fx.Tensor, n: fx.Int32):
        xs = [x for x in (1.0, 2.0) if n > 3]
        C[0] = xs[0]

    check(in_lambda, "pick = lambda", "decides Python control flow here", "lambdas, conditions of comprehensions")
    check(in_comprehension, "xs = [x for", "decides Python control flow here")


def endless(x):
    return 1 if x == 0 else x * endless(x - 1)


def test_a_recursion_that_only_a_run_time_condition_ends():
    def k(C: fx.Tensor, n: fx.Int32):
        C[0] = endless(n)

    message = error(k)
    assert message.startswith(line_of(endless, "return 1 if"))
    assert "run-time branches and loops nest 100 deep" in message and "use a loop" in message


def scaled(x, *, by: fx.Constexpr[int] = 2):
    return x * by


class Scale:
    def __init__(self, by: fx.Constexpr):
        self.by = by

    def apply(self, x, times: fx.Constexpr[int]):
        return x * self.by * times


def test_a_run_time_value_for_a_compile_time_parameter_of_a_helper():
    def by_keyword(C: fx.Tensor, n: fx.Int32):
        C[0] = scaled(C[0], by=n)

    def constructor(C: fx.Tensor, n: fx.Int32):
        Scale(n)

    def method(C: fx.Tensor, n: fx.Int32):
        Scale(2).apply(C[0], C[1])

    def known(C: fx.Tensor, n: fx.Int32):
        C[0] = scaled(Scale(2).apply(C[0], fx.Int32(3))) + scaled(C[0], by=4)

    for fn, name in ((by_keyword, "by of scaled"), (constructor, "by of __init__"), (method, "times of apply")):
        message = error(fn)
        assert f"{name} is a compile-time parameter (Constexpr), and got a run-time" in message
        assert "annotate the parameter with its number type" in message
    flyc.kernel(known).trace(["f32[?]", fx.Int32], "gfx942")


def test_a_vector_as_condition():
    def k(C: fx.Tensor, n: fx.Int32):
        if fx.make_view(C.iter, fx.make_layout(4, 1)).load():
            C[0] = 1.0

    check(k, "if fx.make_view", "a vector of 4 Float32 is used as a condition", "one Boolean")


def test_a_while_condition_that_changes_a_container():
    def k(C: fx.Tensor, n: fx.Int32):
        xs = [n]

        def step():
            xs[0] = xs[0] - 1
            return xs[0] > 0

        while step():
            C[0] = 1.0

    check(k, "while step()", "changes xs", "in the body of the loop")


def test_an_author_error_keeps_its_type_and_a_plain_name_error_stays():
    def wrong(C: fx.Tensor, n: fx.Int32):
        if n > 3:
            C[0] = missing_name  # noqa: F821

    with pytest.raises(NameError, match="missing_name"):
        flyc.kernel(wrong).trace(["f32[?]", fx.Int32], "gfx942")

    def raises(C: fx.Tensor, n: fx.Int32):
        for _ in range(n):
            raise ValueError("mine")

    with pytest.raises(ValueError, match=re.escape("mine")):
        flyc.kernel(raises).trace(["f32[?]", fx.Int32], "gfx942")


def test_endless_recursion_names_the_line():
    def again(x):
        return other(x + 1)

    def other(x):
        return again(x)

    def k(C: fx.Tensor, n: fx.Int32):
        C[0] = again(0)

    message = error(k)
    assert "nest deeper than Python allows while k is traced" in message and "end the recursion earlier" in message
    for fn, line in ((again, "return other"), (other, "return again"), (k, "again(0)")):
        assert message.count(line_of(fn, line)) == 1, message


def test_a_kernel_that_returns_a_value():
    def k(C: fx.Tensor, n: fx.Int32):
        C[0] = 1.0
        return 5

    message = error(k)
    assert "the kernel k returns 5\n  fix: write results into a tensor argument" in message
