"""Split and named barriers: who may pass, and what they order."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.errors import ParseError, SimError
from flyllvm.sim import simulate

pytestmark = pytest.mark.sim
RELEASE, ACQUIRE = '  fence syncscope("workgroup") release\n', '  fence syncscope("workgroup") acquire\n'
BARRIER = "  call void @llvm.amdgcn.s.barrier()\n"
STORE = "  store i32 %t, ptr addrspace(3) %p, align 4\n"
SIGNAL, WAIT = (
    "  call void @llvm.amdgcn.s.barrier.signal(i32 -1)\n",
    "  call void @llvm.amdgcn.s.barrier.wait(i16 -1)\n",
)
READ_MIRRORED = """\
  %m = sub i32 127, %t
  %q = getelementptr i32, ptr addrspace(3) @lds, i32 %m
  %v = load i32, ptr addrspace(3) %q, align 4
  store i32 %v, ptr addrspace(1) %po, align 4
"""


def kernel(body: str) -> str:
    """Four waves of 32 lanes; ``%w`` is the wave, ``%p`` the lane's word of LDS, ``%po`` its output."""
    return f"""
@lds = internal addrspace(3) global [128 x i32] poison, align 16
@bar = internal addrspace(3) global target("amdgcn.named.barrier", 0) poison
@bars = internal addrspace(3) global [2 x target("amdgcn.named.barrier", 0)] poison
define amdgpu_kernel void @k(ptr addrspace(1) %out) {{
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %w = lshr i32 %t, 5
  %p = getelementptr i32, ptr addrspace(3) @lds, i32 %t
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
{body}  ret void
}}
"""


def run(body: str, groups: int = 3, **options: object) -> np.ndarray:
    out = np.zeros(128, np.uint32)
    simulate(kernel(body), grid=groups, block=128, args=[out], target="gfx1250", source_name="k.ll", **options)
    return out


def fails(body: str, message: str) -> str:
    with pytest.raises(SimError, match=message) as caught:
        run(body)
    return str(caught.value)


# ---- split barriers


def split(before: str = RELEASE, between: str = "", after: str = ACQUIRE) -> str:
    return f"  store i32 %t, ptr addrspace(3) %p, align 4\n{before}{SIGNAL}{between}{WAIT}{after}{READ_MIRRORED}"


def test_a_split_barrier_with_fences_orders() -> None:
    assert np.array_equal(run(split()), 127 - np.arange(128))


@pytest.mark.parametrize("body", [split(before=""), split(after=""), split(before="", between=RELEASE)])
def test_a_split_barrier_publishes_what_was_released_before_the_signal(body: str) -> None:
    fails(body, "LDS race")


def test_work_between_signal_and_wait_is_not_ordered_by_it() -> None:
    body = RELEASE + SIGNAL + STORE + RELEASE + WAIT + ACQUIRE + READ_MIRRORED
    fails(body, "LDS race")


def test_a_wait_without_a_signal_never_ends() -> None:
    fails(split().replace(SIGNAL, ""), r"deadlock(.|\n)*every wave must signal the barrier")


def test_a_wait_that_some_waves_do_not_signal_never_ends() -> None:
    body = f"  %c = icmp ult i32 %t, 96\n  br i1 %c, label %s, label %j\ns:\n{SIGNAL}  br label %j\nj:\n{WAIT}"
    fails(body, "deadlock: these waves wait at a barrier that never completes")


def test_signals_and_waits_alternate() -> None:
    fails(split(between=SIGNAL), "every signal needs its wait in the same wave|wait for it in between")


def test_waves_may_signal_in_different_places() -> None:
    body = (
        STORE + RELEASE
        + "  %c = icmp ult i32 %w, 2\n  br i1 %c, label %a, label %b\n"
        f"a:\n{SIGNAL}  br label %j\nb:\n{SIGNAL}  br label %j\nj:\n{WAIT}{ACQUIRE}{READ_MIRRORED}"
    )  # fmt: skip
    assert np.array_equal(run(body), 127 - np.arange(128))


def test_a_split_barrier_meets_a_whole_one() -> None:
    """``s.barrier`` is a signal and a wait."""
    body = (
        STORE + RELEASE
        + "  %c = icmp ult i32 %w, 2\n  br i1 %c, label %a, label %b\n"
        f"a:\n{SIGNAL}{WAIT}  br label %j\nb:\n{BARRIER}  br label %j\nj:\n{ACQUIRE}{READ_MIRRORED}"
    )  # fmt: skip
    assert np.array_equal(run(body), 127 - np.arange(128))


def test_one_wave_is_the_first_to_signal() -> None:
    body = "  %f = call i1 @llvm.amdgcn.s.barrier.signal.isfirst(i32 -1)\n  %z = zext i1 %f to i32\n"
    out = run(body + WAIT + "  store i32 %z, ptr addrspace(1) %po, align 4\n")
    assert np.array_equal(out, np.arange(128) < 32)


def test_a_signal_in_a_branch_of_some_lanes_is_found() -> None:
    body = f"  %c = icmp ult i32 %t, 16\n  br i1 %c, label %s, label %j\ns:\n{SIGNAL}  br label %j\nj:\n{WAIT}"
    fails(body, "live lanes are missing at the barrier: lanes of the same wave")


def test_barriers_of_traps_are_refused() -> None:
    for body in (SIGNAL, WAIT):
        for number in ("-2", "-4"):
            fails(
                body.replace("-1", number), r"use -1 \(the workgroup\), -3 \(its cluster; without isfirst\) or a named"
            )
    first = "  %f = call i1 @llvm.amdgcn.s.barrier.signal.isfirst(i32 -3)\n"
    fails(first, r"-3 \(its cluster; without isfirst\)")


# ---- named barriers


def producers(*, members: int = 4, release: str = RELEASE, acquire: str = ACQUIRE, bar: str = "@bar") -> str:
    """Waves 0 and 1 write and signal; waves 2 and 3 signal, wait and read."""
    signal = f"  call void @llvm.amdgcn.s.barrier.signal.var(ptr addrspace(3) {bar}, i32 0)\n"
    return (
        "  %first = icmp eq i32 %w, 0\n  br i1 %first, label %init, label %go\ninit:\n"
        f"  call void @llvm.amdgcn.s.barrier.init(ptr addrspace(3) {bar}, i32 {members})\n  br label %go\ngo:\n"
        f"  call void @llvm.amdgcn.s.barrier.join(ptr addrspace(3) {bar})\n{BARRIER}"
        "  %prod = icmp ult i32 %w, 2\n  br i1 %prod, label %produce, label %consume\nproduce:\n"
        f"  store i32 %t, ptr addrspace(3) %p, align 4\n{release}{signal}  br label %end\nconsume:\n"
        f"{signal}  call void @llvm.amdgcn.s.barrier.wait(i16 1)\n{acquire}{READ_MIRRORED}  br label %end\nend:\n"
    )


@pytest.mark.parametrize("bar", ["@bar", "getelementptr (i8, ptr addrspace(3) @bars, i32 16)"])
def test_a_named_barrier_hands_data_to_those_that_wait(bar: str) -> None:
    out = run(producers(bar=bar))
    assert np.array_equal(out[64:], 127 - np.arange(64, 128)) and not out[:64].any()


def test_a_named_barrier_orders_through_release_and_acquire_only() -> None:
    fails(producers(release=""), "LDS race on LDS byte .* wave 2 and wave 1 are not ordered")
    fails(producers(acquire=""), "LDS race on LDS byte .* wave 2 and wave 1 are not ordered")


def test_a_named_barrier_with_too_many_members_never_completes() -> None:
    fails(producers(members=5), "as many waves must signal the named barrier as its member count says")


def test_a_named_barrier_with_too_few_members_lets_readers_pass_too_early() -> None:
    fails(producers(members=2), "its member count is less than the waves that signal it")


def test_only_those_who_signalled_are_ordered() -> None:
    """Wave 1 writes and does not signal: the barrier of waves 0, 2 and 3 says nothing about it."""
    body = producers(members=3).replace("produce:\n", "produce:\n  %one = icmp eq i32 %w, 1\n")
    body = body.replace("  br label %end\nconsume", "  br label %end\nconsume", 1)
    head, _, tail = body.partition(STORE + RELEASE)
    signal, _, rest = tail.partition("  br label %end\n")
    body = (
        head
        + "  store i32 %t, ptr addrspace(3) %p, align 4\n"
        + RELEASE
        + "  br i1 %one, label %end, label %tells\ntells:\n"
        + signal
        + "  br label %end\n"
        + rest
    )
    fails(body, "wave 2 and wave 1 are not ordered")


def test_order_is_passed_on_from_barrier_to_barrier() -> None:
    """Wave 0 tells wave 1 through one barrier, wave 1 tells waves 2 and 3 through the other."""
    one, two = "@bars", "getelementptr (i8, ptr addrspace(3) @bars, i32 16)"

    def signal(bar: str) -> str:
        return f"  call void @llvm.amdgcn.s.barrier.signal.var(ptr addrspace(3) {bar}, i32 0)\n"

    def join(bar: str) -> str:
        return f"  call void @llvm.amdgcn.s.barrier.join(ptr addrspace(3) {bar})\n"

    wait = "  call void @llvm.amdgcn.s.barrier.wait(i16 1)\n"
    text = (
        "  %first = icmp eq i32 %w, 0\n  br i1 %first, label %init, label %go\ninit:\n"
        f"  call void @llvm.amdgcn.s.barrier.init(ptr addrspace(3) {one}, i32 2)\n"
        f"  call void @llvm.amdgcn.s.barrier.init(ptr addrspace(3) {two}, i32 3)\n  br label %go\ngo:\n{BARRIER}"
        "  switch i32 %w, label %last [ i32 0, label %a i32 1, label %b ]\n"
        f"a:\n  store i32 7, ptr addrspace(3) @lds, align 4\n{RELEASE}{signal(one)}  br label %end\n"
        f"b:\n{join(one)}{signal(one)}{wait}ACQ{RELEASE}{signal(two)}  br label %end\n"
        f"last:\n{join(two)}{signal(two)}{wait}{ACQUIRE}"
        "  %v = load i32, ptr addrspace(3) @lds, align 4\n  store i32 %v, ptr addrspace(1) %po, align 4\n"
        "  br label %end\nend:\n"
    )
    out = run(text.replace("ACQ", ACQUIRE))
    assert (out[64:] == 7).all()
    fails(text.replace("ACQ", ""), "wave 2 and wave 0 are not ordered")


def test_signal_var_sets_the_member_count() -> None:
    signal = "  call void @llvm.amdgcn.s.barrier.signal.var(ptr addrspace(3) @bar, i32 4)\n"
    body = "  call void @llvm.amdgcn.s.barrier.join(ptr addrspace(3) @bar)\n" + STORE
    out = run(body + RELEASE + signal + "  call void @llvm.amdgcn.s.barrier.wait(i16 1)\n" + ACQUIRE + READ_MIRRORED)
    assert np.array_equal(out, 127 - np.arange(128))


def test_a_wave_that_leaves_a_named_barrier_is_not_waited_for() -> None:
    head = producers()
    signal = "  call void @llvm.amdgcn.s.barrier.signal.var(ptr addrspace(3) @bar, i32 0)\n"
    leave = "  call void @llvm.amdgcn.s.barrier.leave(i16 1)\n"
    body = head.replace(f"{RELEASE}{signal}  br label %end\nconsume", f"{RELEASE}{leave}  br label %end\nconsume")
    fails(body, "LDS race")  # it passes, and what the leavers wrote is not ordered


def test_misused_named_barriers_are_named() -> None:
    body = producers()
    fails(body.replace("  call void @llvm.amdgcn.s.barrier.init(ptr addrspace(3) @bar, i32 4)\n", ""),
          "s.barrier.init gives it one")  # fmt: skip
    fails(
        body.replace("  call void @llvm.amdgcn.s.barrier.join(ptr addrspace(3) @bar)\n", ""),
        "call s.barrier.join first",
    )
    fails(producers(members=33), "give the number of waves that signal it, 1 to 32")
    with pytest.raises(ParseError, match=r"use amdgcn\.named\.barrier, or i32s"):
        simulate('@x = global target("spirv.Image", 0) poison', grid=1, block=1, args=[])
