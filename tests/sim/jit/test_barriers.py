"""Split barriers on both engines: signalled in one block, waited for in another."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate
from tests.sim.engines import both
from tests.sim.test_barriers import ACQUIRE, BARRIER, READ_MIRRORED, RELEASE, SIGNAL, STORE, WAIT, kernel

pytestmark = [pytest.mark.llvm, pytest.mark.sim]

#: Each round writes LDS, signals, does other work, waits in the next block, reads, and signals that it has read.
ROUNDS = f"""\
  br label %write
write:
  %i = phi i32 [ 0, %entry ], [ %n, %read ]
  %s = phi i32 [ 0, %entry ], [ %sum, %read ]
  %x = add i32 %t, %i
  store i32 %x, ptr addrspace(3) %p, align 4
{RELEASE}{SIGNAL}  %some = icmp ult i32 %t, 40
  br i1 %some, label %work, label %read
work:
  %y = mul i32 %x, 3
  br label %read
read:
  %z = phi i32 [ 1, %write ], [ %y, %work ]
{WAIT}{ACQUIRE}  %m = sub i32 127, %t
  %q = getelementptr i32, ptr addrspace(3) @lds, i32 %m
  %v = load i32, ptr addrspace(3) %q, align 4
{RELEASE}{SIGNAL}{WAIT}{ACQUIRE}  %a = add i32 %v, %z
  %sum = add i32 %s, %a
  %n = add i32 %i, 1
  %c = icmp ult i32 %n, 5
  br i1 %c, label %write, label %done
done:
  store i32 %sum, ptr addrspace(1) %po, align 4
"""
OVER_BLOCKS = f"{STORE}{RELEASE}{SIGNAL}  br label %next\nnext:\n{{}}{WAIT}{ACQUIRE}{READ_MIRRORED}"
GONE = (
    f"{STORE}{RELEASE}{SIGNAL}  %c = icmp ult i32 %t, 64\n  br i1 %c, label %next, label %end\nnext:\n"
    f"{WAIT}{ACQUIRE}{READ_MIRRORED}  br label %end\nend:\n"
)


@pytest.mark.parametrize("body", [OVER_BLOCKS.format(""), ROUNDS, GONE], ids=["blocks", "rounds", "gone"])
def test_split_barriers_agree(body: str) -> None:
    out = np.zeros(128, np.uint32)
    if body is GONE:  # waves at another place than the barrier are left to the first engine
        simulate(kernel(body), grid=3, block=128, args=[out], target="gfx1250", checks="none")
        mine = np.zeros(128, np.uint32)
        simulate(kernel(body), grid=3, block=128, args=[mine], target="gfx1250", checks="none", engine="jit")
        assert (mine == out).all()
        return
    both(kernel(body), grid=3, block=128, args=[out], target="gfx1250")
    assert out.any()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (OVER_BLOCKS.format("").replace(SIGNAL, ""), "deadlock"),
        (OVER_BLOCKS.format(SIGNAL), "every signal needs its wait|wait for it in between"),
        (OVER_BLOCKS.format(BARRIER), "signal|barrier"),
        (ROUNDS.replace(f"{RELEASE}{SIGNAL}{WAIT}", f"{RELEASE}{WAIT}"), "deadlock"),
    ],
    ids=["no signal", "two signals", "whole in between", "second missing"],
)
def test_what_does_not_match_is_the_same_fault(body: str, words: str) -> None:
    said = []
    for engine in ("numpy", "jit"):
        with pytest.raises(SimError, match=words) as caught:
            simulate(
                kernel(body), grid=3, block=128, args=[np.zeros(128, np.uint32)], target="gfx1250", checks="none",
                engine=engine,
            )  # fmt: skip
        said.append(str(caught.value))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "call",
    ["%f = call i1 @llvm.amdgcn.s.barrier.signal.isfirst(i32 -1)",
     "call void @llvm.amdgcn.s.barrier.signal.var(ptr addrspace(3) @bar, i32 4)"],
)  # fmt: skip
def test_other_barriers_are_left_to_the_first_engine(call: str) -> None:
    with pytest.raises(SimError, match=r"does not cover: .*barrier"):
        simulate(
            kernel(f"  {call}\n{WAIT}"), grid=1, block=128, args=[np.zeros(128, np.uint32)], target="gfx1250",
            checks="none", engine="jit",
        )  # fmt: skip
