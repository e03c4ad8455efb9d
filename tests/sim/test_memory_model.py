"""Who is ordered after whom: happens-before as LLVM's memory model has it, not the order in which waves ran."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate
from tests.sim.kernels import FENCED_BARRIER, LDS, kernel

pytestmark = pytest.mark.sim
RELEASE, ACQUIRE = '  fence syncscope("workgroup") release\n', '  fence syncscope("workgroup") acquire\n'
BARE = "  call void @llvm.amdgcn.s.barrier()\n"
FILL = "  %p = getelementptr i32, ptr addrspace(3) @lds, i32 %t\n  store i32 %t, ptr addrspace(3) %p, align 4\n"
OVERWRITE = "  store i32 1, ptr addrspace(3) @lds, align 4\n"
OUT = "  %po = getelementptr i32, ptr addrspace(1) %out, i32 %t\n"


def by_wave(*bodies: str, before: str = "", after: str = "") -> str:
    """A kernel in which every wave runs a body of its own, between parts for all."""
    cases = " ".join(f"i32 {i}, label %wave{i}" for i in range(len(bodies)))
    arms = "".join(f"wave{i}:\n{body}  br label %join\n" for i, body in enumerate(bodies))
    return kernel(f"{before}  switch i32 %w, label %join [ {cases} ]\n{arms}join:\n{after}  ret void\n", module=LDS)


def slot(name: str, index: int) -> str:
    return f"  %{name} = getelementptr i32, ptr addrspace(3) @lds, i32 {index}\n"


def run(text: str, block: int = 256, **options: object) -> np.ndarray:
    out = np.zeros(256, np.uint32)
    simulate(text, grid=options.pop("grid", 2), block=block, args=[out], source_name="k.ll", **options)  # type: ignore[arg-type]
    return out


def races(text: str, message: str = "LDS race", **options: object) -> None:
    with pytest.raises(SimError, match=message):
        run(text, **options)


# ---- fences around a barrier, wave by wave


@pytest.mark.parametrize("writer", [0, 1, 2, 3])
@pytest.mark.parametrize("reader", [0, 1, 2, 3])
@pytest.mark.parametrize("released", [True, False])
@pytest.mark.parametrize("acquired", [True, False])
def test_the_writer_releases_and_the_reader_acquires(writer: int, reader: int, released: bool, acquired: bool) -> None:
    """Fences of the other waves do not help, in whatever order the waves run."""
    if writer == reader:
        return
    first = [RELEASE] * 4
    first[writer] = "  store i32 7, ptr addrspace(3) @lds, align 4\n" + (RELEASE if released else "")
    second = [ACQUIRE] * 4
    second[reader] = (ACQUIRE if acquired else "") + "  %v = load i32, ptr addrspace(3) @lds, align 4\n"
    cases = " ".join(f"i32 {i}, label %b{i}" for i in range(4))
    arms = "".join(f"b{i}:\n{body}  br label %end\n" for i, body in enumerate(second))
    text = by_wave(*first, after=f"{BARE}  switch i32 %w, label %end [ {cases} ]\n{arms}end:\n")
    if released and acquired:
        run(text)
    else:
        races(text, f"wave {reader} and wave {writer} are not ordered")


@pytest.mark.parametrize("reader", [0, 3])
@pytest.mark.parametrize("fence", ["release", "acquire", "both"])
def test_a_write_after_a_read_needs_the_same(reader: int, fence: str) -> None:
    writer = 3 - reader
    first, second = [RELEASE] * 4, [ACQUIRE] * 4
    load = f"  %r{reader} = load i32, ptr addrspace(3) @lds, align 4\n"
    first[reader] = load + (RELEASE if fence in ("release", "both") else "")
    second[writer] = (
        ACQUIRE if fence in ("acquire", "both") else ""
    ) + "  store i32 1, ptr addrspace(3) @lds, align 4\n"
    cases = " ".join(f"i32 {i}, label %b{i}" for i in range(4))
    arms = "".join(f"b{i}:\n{body}  br label %end\n" for i, body in enumerate(second))
    text = by_wave(
        *first, before=FILL + FENCED_BARRIER, after=f"{BARE}  switch i32 %w, label %end [ {cases} ]\n{arms}end:\n"
    )
    if fence == "both":
        run(text)
    else:
        races(text, f"wave {writer} and wave {reader} are not ordered")


def test_every_reader_counts_not_only_the_last() -> None:
    """Waves 0 and 1 read the same word; only wave 1, which ran last, releases before wave 2 overwrites it."""
    read = "  %r{} = load i32, ptr addrspace(3) @lds, align 4\n"

    def text(fence: str) -> str:
        first = [read.format(0) + fence, RELEASE * 3 + read.format(1) + RELEASE, RELEASE, RELEASE]
        second = (
            "  %c = icmp eq i32 %w, 2\n  br i1 %c, label %s, label %end\ns:\n  store i32 1, ptr addrspace(3) @lds\n"
        )
        return by_wave(*first, before=FILL + FENCED_BARRIER, after=BARE + ACQUIRE + second + "  br label %end\nend:\n")

    run(text(RELEASE))
    races(text(""), "wave 2 and wave 0 are not ordered")


# ---- atomic operations


FLAG = slot("flag", 255)
INIT = (
    FLAG + "  %z = icmp eq i32 %t, 0\n  br i1 %z, label %init, label %start\ninit:\n"
    "  store i32 0, ptr addrspace(3) %flag, align 4\n  br label %start\nstart:\n" + FENCED_BARRIER
)  # fmt: skip


def store(value: int, order: str, name: str = "%flag") -> str:
    return f'  store atomic i32 {value}, ptr addrspace(3) {name} syncscope("workgroup") {order}, align 4\n'


def spin(value: int, order: str, name: str, flag: str = "%flag") -> str:
    return (
        f"  br label %spin{name}\nspin{name}:\n"
        f'  %f{name} = load atomic i32, ptr addrspace(3) {flag} syncscope("workgroup") {order}, align 4\n'
        f"  %g{name} = icmp eq i32 %f{name}, {value}\n"
        f"  br i1 %g{name}, label %got{name}, label %spin{name}\ngot{name}:\n"
    )


WRITE = "  store i32 7, ptr addrspace(3) @lds, align 4\n"
READ = "  %v = load i32, ptr addrspace(3) @lds, align 4\n"


@pytest.mark.parametrize(
    ("releases", "acquires"), [("release", "acquire"), ("monotonic", "acquire"), ("release", "monotonic")]
)
def test_a_flag_orders_through_release_and_acquire(releases: str, acquires: str) -> None:
    for writer, reader in ((0, 3), (3, 0)):
        bodies = [""] * 4
        bodies[writer] = WRITE + store(1, releases)
        bodies[reader] = spin(1, acquires, "r") + READ
        text = by_wave(*bodies, before=INIT)
        if (releases, acquires) == ("release", "acquire"):
            run(text)
        else:
            races(text, f"wave {reader} and wave {writer} are not ordered")


def test_an_acquire_learns_only_from_the_address_it_reads() -> None:
    """Wave 1 released to another flag, before wave 2 acquired this one."""
    other = slot("other", 254)
    init = INIT.replace(
        "  store i32 0, ptr addrspace(3) %flag",
        "  store i32 0, ptr addrspace(3) %other\n  store i32 0, ptr addrspace(3) %flag",
    )
    bodies = ["", WRITE + store(1, "release", "%other"), spin(1, "acquire", "r") + READ, store(1, "release")]
    races(by_wave(*bodies, before=other + init), "wave 2 and wave 1 are not ordered")
    bodies[2] = spin(1, "acquire", "r", "%other") + READ
    run(by_wave(*bodies, before=other + init))


def test_order_is_passed_on_through_a_second_flag() -> None:
    other = slot("other", 254)
    init = INIT.replace(
        "  store i32 0, ptr addrspace(3) %flag",
        "  store i32 0, ptr addrspace(3) %other\n  store i32 0, ptr addrspace(3) %flag",
    )
    for middle in ("acquire", "monotonic"):
        bodies = [WRITE + store(1, "release"), spin(1, middle, "a") + store(1, "release", "%other"),
                  spin(1, "acquire", "b", "%other") + READ, ""]  # fmt: skip
        text = by_wave(*bodies, before=other + init)
        if middle == "acquire":
            run(text)
        else:
            races(text, "wave 2 and wave 0 are not ordered")


def test_a_counter_orders_those_that_count_after_one_another() -> None:
    """Each wave writes its word and counts; the last to count reads all words."""
    count = (
        "  %p = getelementptr i32, ptr addrspace(3) @lds, i32 %w\n  %lead = icmp eq i32 %l, 0\n"
        "  br i1 %lead, label %work, label %end\nwork:\n  store i32 7, ptr addrspace(3) %p, align 4\n"
        '  %old = atomicrmw add ptr addrspace(3) %flag, i32 1 syncscope("workgroup") ORDER\nHERE'
        "  %last = icmp eq i32 %old, 3\n  br i1 %last, label %sum, label %end\nsum:\n"
        "  %v = load <4 x i32>, ptr addrspace(3) @lds, align 16\n  br label %end\nend:\n  ret void\n"
    )
    text = kernel(INIT + count, module=LDS)
    run(text.replace("ORDER", "acq_rel").replace("HERE", ""))
    fenced = text.replace("  %old =", RELEASE + "  %old =").replace("ORDER", "monotonic").replace("HERE", ACQUIRE)
    run(fenced)
    for order in ("monotonic", "acquire", "release"):
        races(text.replace("ORDER", order).replace("HERE", ""), "wave 3 and .*not ordered|not ordered")
    races(fenced.replace(ACQUIRE + "  %last", "  %last"))


def test_a_lock_orders_its_holders() -> None:
    def text(take: str, give: str) -> str:
        body = (
            "  %lead = icmp eq i32 %l, 0\n  br i1 %lead, label %spin, label %end\nspin:\n"
            f'  %x = cmpxchg ptr addrspace(3) %flag, i32 0, i32 1 syncscope("workgroup") {take} monotonic\n'
            "  %ok = extractvalue { i32, i1 } %x, 1\n  br i1 %ok, label %held, label %spin\nheld:\n"
            "  %v = load i32, ptr addrspace(3) @lds, align 4\n  %n = add i32 %v, 1\n"
            f"  store i32 %n, ptr addrspace(3) @lds, align 4\n{store(0, give)}  br label %end\nend:\n{FENCED_BARRIER}"
            "  %s = load i32, ptr addrspace(3) @lds, align 4\n"
            + OUT
            + "  store i32 %s, ptr addrspace(1) %po\n  ret void\n"
        )
        zero = INIT.replace(
            "  store i32 0, ptr", "  store i32 0, ptr addrspace(3) @lds, align 4\n  store i32 0, ptr", 1
        )
        return kernel(zero + body, module=LDS)

    assert (run(text("acquire", "release")) == 4).all()
    races(text("monotonic", "release"))
    races(text("acquire", "monotonic"))


def test_counting_atomics_order_nothing_and_do_not_race() -> None:
    fill = FILL.replace("store i32 %t", "store i32 0")
    count = "  %b = and i32 %t, 15\n  %q = getelementptr i32, ptr addrspace(3) @lds, i32 %b\n"
    count += '  %old = atomicrmw add ptr addrspace(3) %q, i32 1 syncscope("workgroup") monotonic\n'
    out = "  %v = load i32, ptr addrspace(3) %q, align 4\n  %po = getelementptr i32, ptr addrspace(1) %out, i32 %t\n"
    out += "  store i32 %v, ptr addrspace(1) %po, align 4\n  ret void\n"
    assert (run(kernel(fill + FENCED_BARRIER + count + FENCED_BARRIER + out, module=LDS)) == 16).all()
    races(kernel(fill + FENCED_BARRIER + count + out, module=LDS))
    races(kernel(fill + FENCED_BARRIER + count + BARE + out, module=LDS))


# ---- other workgroups


def _semaphore(order: str, scope: str = "agent") -> str:
    """Every workgroup writes its word; the last to count adds all of them."""
    return f"""
define amdgpu_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %count, ptr addrspace(1) %parts) {{
entry:
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %p = getelementptr i32, ptr addrspace(1) %parts, i32 %g
  store i32 %g, ptr addrspace(1) %p, align 4
  %old = atomicrmw add ptr addrspace(1) %count, i32 1 syncscope("{scope}") {order}
  %last = icmp eq i32 %old, 3
  br i1 %last, label %sum, label %end
sum:
  %v = load <4 x i32>, ptr addrspace(1) %parts, align 16
  %s = call i32 @llvm.vector.reduce.add.v4i32(<4 x i32> %v)
  store i32 %s, ptr addrspace(1) %out, align 4
  br label %end
end:
  ret void
}}"""


def _workgroups(text: str) -> int:
    out, count, parts = np.zeros(1, np.uint32), np.zeros(1, np.uint32), np.zeros(4, np.uint32)
    simulate(text, grid=4, block=1, args=[out, count, parts], checks="all")
    return int(out[0])


def test_workgroups_are_ordered_by_atomics_of_wide_scope() -> None:
    assert _workgroups(_semaphore("acq_rel")) == 6
    for order in ("monotonic", "acquire", "release"):
        with pytest.raises(SimError, match=r"race on byte .* of argument 2"):
            _workgroups(_semaphore(order))
    with pytest.raises(SimError, match=r"race on byte .* of argument 1 .*\n.*of several workgroups need syncscope"):
        _workgroups(_semaphore("acq_rel", "workgroup"))
