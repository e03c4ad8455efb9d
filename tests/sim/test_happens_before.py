"""The race detector against the definition: random programs of waves with fences and barriers, judged pair by pair.

The reference builds happens-before as a graph over fences: a release reaches an acquire through a barrier that stands
behind the one and before the other; an acquire reaches the later releases of its wave.  Two accesses of different waves
are ordered if a release behind the first reaches an acquire before the second.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate
from tests.sim.kernels import FENCED_BARRIER, kernel

pytestmark = pytest.mark.sim
WAVES, SLOTS = 3, 3
Event = tuple[str, int]  # kind and slot; a barrier has its number


def random_program(rng: random.Random, phases: int) -> list[list[Event]]:
    """One list of events for each wave, with the same number of barriers."""
    bias = max(rng.random(), rng.random(), rng.random())
    program = []
    for _ in range(WAVES):
        events: list[Event] = []
        for phase in range(phases):
            for _ in range(rng.randrange(3)):
                events.append((rng.choice(["load", "load", "store"]), rng.randrange(SLOTS)))
                if rng.random() < 0.2:
                    events.append((rng.choice(["release", "acquire"]), 0))
            if rng.random() < bias:
                events.append(("release", 0))
            if phase + 1 < phases:
                events.append(("barrier", phase))
                if rng.random() < bias:
                    events.append(("acquire", 0))
        program.append(events)
    return program


def has_race(program: list[list[Event]]) -> bool:
    """Whether two conflicting accesses are not ordered."""
    places = [(w, i) for w, events in enumerate(program) for i in range(len(events))]
    fences = [(w, i) for w, i in places if program[w][i][0] in ("release", "acquire")]

    def barriers(wave: int, start: int, end: int) -> set[int]:
        return {number for kind, number in program[wave][start:end] if kind == "barrier"}

    reach: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for w, i in fences:
        reach[w, i] = set()
        for v, j in fences:
            kinds = program[w][i][0], program[v][j][0]
            through = barriers(w, i, len(program[w])) & barriers(v, 0, j)
            if (kinds == ("release", "acquire") and v != w and through) or (v == w and j > i):
                reach[w, i].add((v, j))
    changed = True
    while changed:
        changed = False
        for found in reach.values():
            more = set().union(*(reach[f] for f in found)) - found if found else set()
            found |= more
            changed = changed or bool(more)

    def ordered(a: tuple[int, int], b: tuple[int, int]) -> bool:
        releases = [f for f in fences if f[0] == a[0] and f[1] > a[1] and program[f[0]][f[1]][0] == "release"]
        acquires = {f for f in fences if f[0] == b[0] and f[1] < b[1] and program[f[0]][f[1]][0] == "acquire"}
        return any(reach[r] & acquires for r in releases)

    accesses = [(p, program[p[0]][p[1]]) for p in places if program[p[0]][p[1]][0] in ("load", "store")]
    for n, (a, (kind_a, slot_a)) in enumerate(accesses):
        for b, (kind_b, slot_b) in accesses[n + 1 :]:
            conflict = slot_a == slot_b and "store" in (kind_a, kind_b) and a[0] != b[0]
            if conflict and not ordered(a, b) and not ordered(b, a):
                return True
    return False


def text_of(program: list[list[Event]], split: bool) -> str:
    """The kernel.  With ``split`` barriers are signals and waits."""
    barrier = "call void @llvm.amdgcn.s.barrier()\n"
    if split:
        barrier = "call void @llvm.amdgcn.s.barrier.signal(i32 -1)\ncall void @llvm.amdgcn.s.barrier.wait(i16 -1)\n"
    arms = []
    for w, events in enumerate(program):
        lines = [f"wave{w}:\n"]
        for i, (kind, slot) in enumerate(events):
            pointer = f"ptr addrspace(3) getelementptr (i32, ptr addrspace(3) @lds, i32 {slot})"
            lines.append({
                "load": f"%v{w}_{i} = load i32, {pointer}, align 4\n",
                "store": f"store i32 {w * 100 + i}, {pointer}, align 4\n",
                "barrier": barrier,
            }.get(kind, f'fence syncscope("workgroup") {kind}\n'))  # fmt: skip
        arms.append("".join(lines) + "br label %end\n")
    cases = " ".join(f"i32 {w}, label %wave{w}" for w in range(WAVES))
    fill = "".join(
        f"store i32 0, ptr addrspace(3) getelementptr (i32, ptr addrspace(3) @lds, i32 {s}), align 4\n"
        for s in range(SLOTS)
    )
    return kernel(
        f"{fill}{FENCED_BARRIER}switch i32 %w, label %end [ {cases} ]\n{''.join(arms)}end:\nret void",
        module=f"@lds = internal addrspace(3) global [{SLOTS} x i32] poison, align 16\n",
    )


def found(text: str, target: str) -> bool:
    try:
        simulate(text, grid=1, block=64 * WAVES, args=[np.zeros(1, np.uint32)], target=target, wave_size=64)
    except SimError as error:
        assert "LDS race" in str(error), str(error)
        return True
    return False


@pytest.mark.parametrize("part", range(4))
def test_exactly_the_programs_with_an_unordered_pair_are_reported(part: int) -> None:
    counts = [0, 0]
    for seed in range(part * 60, part * 60 + 60):
        rng = random.Random(seed)
        program = random_program(rng, rng.randrange(2, 5))
        wanted = has_race(program)
        split = seed % 3 == 0
        assert found(text_of(program, split), "gfx1200" if split else "gfx942") == wanted, (seed, program)
        counts[wanted] += 1
    assert min(counts) >= 8, counts
