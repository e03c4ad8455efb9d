"""Loops that never end, or not in any sensible time, are found early; long loops that end are not."""

from __future__ import annotations

import time

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate
from tests.sim.kernels import FENCED_BARRIER, LDS, STORE_OUT, kernel

pytestmark = pytest.mark.sim


def run(text: str, block: int = 256, **options: object) -> np.ndarray:
    out = np.zeros(256, np.uint32)
    simulate(text, grid=1, block=block, args=[out], source_name="k.ll", **options)
    return out


def endless(text: str, message: str, block: int = 256, **options: object) -> str:
    """The error, which must come within seconds."""
    start = time.monotonic()
    with pytest.raises(SimError, match=message) as caught:
        run(text, block, **options)
    assert time.monotonic() - start < 20
    return str(caught.value)


def counting(first: str, step: str, exit_: str, bits: int = 32, end: str = "") -> str:
    """``for (i = first; i PRED N; i = step)`` with some work."""
    return kernel(
        f"br label %loop\nloop:\n%i = phi i{bits} [ {first}, %entry ], [ %i1, %work ]\n"
        "%s = phi i32 [ 0, %entry ], [ %s1, %work ]\nbr label %work\nwork:\n%s1 = xor i32 %s, %t\n"
        f"%i1 = {step}\n%more = icmp {exit_}\nbr i1 %more, label %loop, label %end\nend:\n"
        + STORE_OUT.format(value="%s")
    )


# ---- a state that comes again


SPIN = """
    br label %spin
    spin:
    %f = load atomic i32, ptr addrspace(1) %out syncscope("agent") acquire, align 4
    %go = icmp eq i32 %f, 0
    br i1 %go, label %spin, label %end
    end:
    ret void"""


def test_a_flag_that_nobody_sets() -> None:
    error = endless(kernel(SPIN), "an endless loop: nothing changes any more")
    assert error.startswith("k.ll:11: 'br i1 %go") and "a value that another workgroup shall write" in error


def test_a_lane_that_spins_for_a_lane_of_its_own_wave() -> None:
    body = """
    %first = icmp eq i32 %t, 0
    br i1 %first, label %spin, label %set
    spin:
    %f = load atomic i32, ptr addrspace(1) %out syncscope("agent") acquire, align 4
    %go = icmp eq i32 %f, 0
    br i1 %go, label %spin, label %end
    set:
    store atomic i32 1, ptr addrspace(1) %out syncscope("agent") release, align 4
    br label %end
    end:
    ret void"""
    assert "lanes of the same wave wait outside" in endless(kernel(body), "nothing changes any more", block=64)
    run(kernel(body.replace("eq i32 %t, 0", "ult i32 %t, 64")), block=128)  # waves do not wait for each other so


@pytest.mark.parametrize(
    "attempt",
    [
        '%x = cmpxchg ptr addrspace(1) %out, i32 0, i32 1 syncscope("agent") acq_rel monotonic\n'
        "%old = extractvalue { i32, i1 } %x, 0",
        '%old = atomicrmw xchg ptr addrspace(1) %out, i32 1 syncscope("agent") acq_rel',
    ],
    ids=["compare and exchange", "exchange"],
)
def test_a_lock_that_a_lane_takes_while_others_of_its_wave_try(attempt: str) -> None:
    """The lane with the lock waits for the others at the loop's end; trying again changes nothing in memory."""
    body = (
        f"br label %try\ntry:\n{attempt}\n%got = icmp eq i32 %old, 0\nbr i1 %got, label %locked, label %try\n"
        'locked:\nstore atomic i32 0, ptr addrspace(1) %out syncscope("agent") release, align 4\nret void'
    )
    assert "lanes of the same wave wait outside" in endless(kernel(body), "nothing changes any more", block=8)
    run(kernel(body), block=1)


INIT = (
    "%z = icmp eq i32 %t, 0\nbr i1 %z, label %init, label %start\ninit:\n"
    "store <2 x i32> zeroinitializer, ptr addrspace(3) @lds, align 8\nbr label %start\nstart:\n" + FENCED_BARRIER
)


def _spin(name: str, pointer: str, then: str) -> str:
    return (
        f'{name}:\n%f{name} = load atomic i32, ptr addrspace(3) {pointer} syncscope("workgroup") acquire, align 4\n'
        f"%g{name} = icmp eq i32 %f{name}, 0\nbr i1 %g{name}, label %{name}, label %{then}\n"
    )


def test_two_waves_that_wait_for_each_other() -> None:
    """Each sets its flag only after it saw the other's."""
    second = "getelementptr (i8, ptr addrspace(3) @lds, i32 4)"
    store = 'store atomic i32 1, ptr addrspace(3) {} syncscope("workgroup") release, align 4\nbr label %end\n'
    body = (
        INIT + "%c = icmp ult i32 %t, 64\nbr i1 %c, label %a, label %b\n"
        + _spin("a", "@lds", "seta") + _spin("b", second, "setb")
        + "seta:\n" + store.format(second) + "setb:\n" + store.format("@lds") + "end:\nret void"
    )  # fmt: skip
    assert "all waves spin" in endless(kernel(body, module=LDS), "nothing changes any more", block=128)
    fair = body.replace("br i1 %c, label %a, label %b", "br i1 %c, label %seta, label %b")
    run(kernel(fair.replace("label %a,", "label %seta,"), module=LDS), block=128)


def test_a_wave_that_spins_while_the_others_wait_at_a_barrier() -> None:
    body = (
        INIT + "%c = icmp ult i32 %t, 64\nbr i1 %c, label %a, label %b\n" + _spin("a", "@lds", "b")
        + "b:\n" + FENCED_BARRIER
        + 'store atomic i32 1, ptr addrspace(3) @lds syncscope("workgroup") release, align 4\nret void'
    )  # fmt: skip
    assert "stands behind a barrier" in endless(kernel(body, module=LDS), "nothing changes any more", block=128)


# ---- code without an end


def test_a_loop_without_an_exit_is_found_at_once() -> None:
    body = "br label %x\nx:\n%i = phi i32 [ 0, %entry ], [ %i1, %x ]\n%i1 = add i32 %i, 1\nbr label %x ; again"
    assert endless(kernel(body), "no path leads from here to the end of the kernel").startswith("k.ll:7: 'br label %x'")
    guarded = "%c = icmp ult i32 %t, 0\nbr i1 %c, label %x, label %end\nx:\nbr label %x\nend:\nret void"
    run(kernel(guarded))  # nobody goes there


# ---- counters


@pytest.mark.parametrize(
    "text",
    [
        counting("0", "add i32 %i, 0", "ult i32 %i1, 10"),
        counting("1", "add i32 %i, 2", "ne i32 %i1, 100"),
        counting("0", "add i32 %i, 1", "ne i32 %i1, -1"),
        counting("0", "sub i32 %i, 1", "slt i32 %i1, 100"),
        counting("5", "add i32 %i, 1", "sgt i32 %i1, 0"),
        counting("0", "add i64 %i, 1", "ult i64 %i1, 100000000000", 64),
        counting("%t", "add i32 %i, 1", "ult i32 %i1, -5"),
    ],
    ids=["no step", "steps over the end", "all numbers", "wrong way", "wrong sense", "too far", "lanes differ"],
)
def test_counters_that_run_away(text: str) -> None:
    error = endless(text, "nothing changes any more|the loop would go on for about .* blocks, the limit is 2000000")
    assert "check the loop's exit condition" in error


def test_nested_counters_that_run_away() -> None:
    body = (
        "br label %outer\nouter:\n%i = phi i32 [ 0, %entry ], [ %i1, %latch ]\nbr label %inner\n"
        "inner:\n%j = phi i32 [ 0, %outer ], [ %j1, %inner ]\n%j1 = add i32 %j, 1\n%m = icmp ult i32 %j1, 7\n"
        "br i1 %m, label %inner, label %latch\nlatch:\n%i1 = add i32 %i, 1\n%n = icmp ult i32 %i1, 4000000000\n"
        "br i1 %n, label %outer, label %end\nend:\nret void"
    )
    endless(kernel(body), "the loop would go on for about")


@pytest.mark.parametrize(
    ("text", "last"),
    [
        (counting("0", "add i32 %i, 1", "ult i32 %i1, 9001"), None),
        (counting("100000", "sub i32 %i, 10", "sgt i32 %i1, 0"), None),
        (counting("0", "add i32 %i, 3", "ne i32 %i1, 30000"), None),
        (counting("1", "mul i32 %i, 3", "ne i32 %i1, 1"), "slow"),
    ],
    ids=["up", "down", "to one value", "powers"],
)
def test_long_loops_that_end(text: str, last: str | None) -> None:
    if last is None:
        run(text)
    else:  # 3**k comes back to 1 after 2**30 steps: no straight counter, so that the limit ends it
        endless(text, "ran 5000 blocks without an end", max_steps=5000)


def test_the_limit_can_be_raised_and_lowered() -> None:
    text = counting("0", "add i32 %i, 1", "ult i32 %i1, 5000")
    run(text)
    assert "raise max_steps" in endless(text, "the limit is 4000|ran 4000 blocks without an end", max_steps=4000)


def test_a_loop_that_something_else_ends_is_not_judged_by_its_counter() -> None:
    """It stops at a flag in memory that another wave sets, far before its counter would."""
    body = (
        INIT + "%c = icmp ult i32 %t, 64\nbr i1 %c, label %loop, label %other\n"
        "loop:\n%i = phi i32 [ 0, %start ], [ %i1, %next ]\n"
        '%f = load atomic i32, ptr addrspace(3) @lds syncscope("workgroup") acquire, align 4\n'
        "%set = icmp ne i32 %f, 0\nbr i1 %set, label %end, label %next\n"
        "next:\n%i1 = add i32 %i, 1\n%more = icmp ult i32 %i1, 2000000000\nbr i1 %more, label %loop, label %end\n"
        "other:\n%j = phi i32 [ 0, %start ], [ %j1, %other ]\n%j1 = add i32 %j, 1\n%on = icmp ult i32 %j1, 600\n"
        "br i1 %on, label %other, label %tell\n"
        'tell:\nstore atomic i32 1, ptr addrspace(3) @lds syncscope("workgroup") release, align 4\nbr label %end\n'
        "end:\nret void"
    )
    run(kernel(body, module=LDS), block=128)
