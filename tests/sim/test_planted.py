"""Small mistakes of many kinds, each found at its line, beside the right version of the same kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate
from tests.sim.kernels import FENCED_BARRIER, LDS, STORE_OUT, kernel, line_of

pytestmark = pytest.mark.sim
RELEASE, ACQUIRE = '  fence syncscope("workgroup") release\n', '  fence syncscope("workgroup") acquire\n'
BARE = "  call void @llvm.amdgcn.s.barrier()\n"


def run(text: str, block: int = 256, grid: int = 1, size: int = 1024, **options: Any) -> None:
    simulate(text, grid=grid, block=block, args=[np.zeros(size, np.uint32)], source_name="k.ll", **options)


def lds(index: str, name: str = "%p", base: str = "@lds", type_: str = "i32") -> str:
    return f"{name} = getelementptr {type_}, ptr addrspace(3) {base}, i32 {index}\n"


MINE = lds("%t")
STORE = MINE + "store i32 %t, ptr addrspace(3) %p, align 4\n"
HALF = "%h = lshr i32 %t, 1\n" + lds("%h")
PAIR = "%p = getelementptr <2 x i32>, ptr addrspace(1) %out, i32 %t\n"
PAIR += "store <2 x i32> %x, ptr addrspace(1) %p, align 8\nret void"
MIRROR = "%m = sub i32 255, %t\n" + lds("%m", "%q") + "%v = load i32, ptr addrspace(3) %q, align 4\n"
END = "ret void"
GLOBAL = "%g = getelementptr i32, ptr addrspace(1) %out, i32 %t\n"
DMA = GLOBAL + "%wb = and i32 %t, -64\n" + lds("%wb", "%lb")
DMA += "call void @llvm.amdgcn.global.load.lds(ptr addrspace(1) %g, ptr addrspace(3) %lb, i32 4, i32 0, i32 0)\n"
RSRC = "%r = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1("
RSRC += "ptr addrspace(1) %out, i16 0, i64 {records}, i32 159744)\n"
LOAD = "%v = call i32 @llvm.amdgcn.raw.ptr.buffer.load.i32(ptr addrspace(8) %r, i32 %o, i32 0, i32 0)\nret void"


def loop(body: str, trips: str = "4") -> str:
    return (
        f"br label %loop\nloop:\n%i = phi i32 [ 0, %entry ], [ %i1, %loop ]\n{body}%i1 = add i32 %i, 1\n"
        f"%more = icmp ult i32 %i1, {trips}\nbr i1 %more, label %loop, label %end\nend:\nret void"
    )


def stages(count: int, write: str = "%o", read: str = "%o") -> str:
    """One barrier in each turn, and so many buffers."""
    body = (
        f"%k = urem i32 %i, {count}\n%o = mul i32 %k, 256\n%j = add i32 %k, 1\n%n0 = urem i32 %j, {count}\n"
        f"%next = mul i32 %n0, 256\n{lds(write, '%bw')}{lds(read, '%br')}{lds('%t', '%p', '%bw')}"
        "%x = add i32 %t, %i\nstore i32 %x, ptr addrspace(3) %p, align 4\n"
        f"{FENCED_BARRIER}%m = sub i32 255, %t\n{lds('%m', '%q', '%br')}%v = load i32, ptr addrspace(3) %q, align 4\n"
    )
    return kernel(loop(body), module=LDS.replace("256", "768"))


def either(condition: str, body: str, otherwise: str = "", after: str = END) -> str:
    head = f"%c = icmp {condition}\nbr i1 %c, label %a, label %b\n"
    return f"{head}a:\n{body}br label %j\nb:\n{otherwise}br label %j\nj:\n{after}"


# Name -> faulty kernel, fragment of the line, message, right kernel, options.
CASES: dict[str, tuple[str, str, str, str, dict[str, Any]]] = {
    "lanes store to one LDS word": (
        kernel(HALF + "store i32 %t, ptr addrspace(3) %p, align 4\nret void", module=LDS),
        "store i32 %t", "lanes of one wave store different values to LDS byte 0 of @lds",
        kernel(HALF + "store i32 %h, ptr addrspace(3) %p, align 4\nret void", module=LDS), {},
    ),
    "vector stores of neighbours overlap": (
        kernel(lds("%l") + "%x = insertelement <2 x i32> zeroinitializer, i32 %t, i32 0\n"
               "store <2 x i32> %x, ptr addrspace(3) %p, align 4\nret void", module=LDS),
        "store <2 x i32>", "lanes of one wave store different values",
        kernel("%d = mul i32 %l, 2\n" + lds("%d") + "%x = insertelement <2 x i32> zeroinitializer, i32 %t, i32 0\n"
               "store <2 x i32> %x, ptr addrspace(3) %p, align 4\nret void", module=LDS), {"block": 64},
    ),
    "lanes store to one global word": (
        kernel("%h = lshr i32 %t, 1\n%p = getelementptr i32, ptr addrspace(1) %out, i32 %h\n"
               "store i32 %t, ptr addrspace(1) %p, align 4\nret void"),
        "store i32 %t", "race: lanes of one wave store different values to byte 0 of argument 0",
        kernel(GLOBAL + "store i32 %t, ptr addrspace(1) %g, align 4\nret void"), {"checks": "all"},
    ),
    "one buffer, one barrier in a turn": (stages(1), "store i32 %x", "LDS race", stages(2), {}),
    "reads the buffer that is filled next": (
        stages(2, "%next", "%o"), "%v = load", "uninitialised|LDS race", stages(3, "%next", "%next"), {},
    ),
    "waves turn a different number of times": (
        kernel(loop(BARE, "%w")), "s.barrier", "barrier", kernel(loop(BARE, "3")), {},
    ),
    "a mask skips a barrier": (
        kernel(either("ne i32 %w, 2", BARE, "", "store i32 1, ptr addrspace(1) %out\nret void")), "s.barrier",
        "live lanes are missing at the barrier", kernel(either("ult i32 %w, 9", BARE)), {},
    ),
    "dynamic LDS is too small": (
        kernel(lds("%t", base="@d") + "store i32 1, ptr addrspace(3) %p\nret void",
               module="@d = external addrspace(3) global [0 x i32], align 16\n"),
        "store i32 1", "writes 4 bytes out of bounds",
        kernel(lds("%t", base="@d") + "store i32 1, ptr addrspace(3) %p\nret void",
               module="@d = external addrspace(3) global [0 x i8], align 16\n"),
        {"dynamic_lds_bytes": 1000, "right": {"dynamic_lds_bytes": 1024}},
    ),
    "one element of a vector is never set": (
        kernel("%x = insertelement <2 x i32> poison, i32 %t, i32 0\n" + PAIR),
        "store <2 x i32>", "the stored value is poison",
        kernel("%x = insertelement <2 x i32> zeroinitializer, i32 %t, i32 0\n" + PAIR), {},
    ),
    "LDS is filled up to a bound and read whole": (
        kernel(either("ult i32 %t, 200", STORE, "", FENCED_BARRIER + MIRROR + END), module=LDS), "%v = load",
        "read of uninitialised LDS byte 1020 of @lds.*lanes 0-55",
        kernel(STORE + FENCED_BARRIER + MIRROR + END, module=LDS), {},
    ),
    "workgroups count with an atomic operation of one workgroup's scope": (
        kernel('%v = atomicrmw add ptr addrspace(1) %out, i32 1 syncscope("workgroup") monotonic\nret void'),
        "%v = atomicrmw", r"race on byte 0 .*not ordered with '%v = atomicrmw(?s:.*)of several workgroups need",
        kernel('%v = atomicrmw add ptr addrspace(1) %out, i32 1 syncscope("agent") monotonic\nret void'),
        {"checks": "all", "grid": 2},
    ),
    "a counter in LDS is never set to zero": (
        kernel('%v = atomicrmw add ptr addrspace(3) @lds, i32 1 syncscope("workgroup") monotonic\n' + END, module=LDS),
        "%v = atomicrmw", "read of uninitialised LDS byte 0 of @lds",
        kernel('%v = atomicrmw xchg ptr addrspace(3) @lds, i32 1 syncscope("workgroup") monotonic\n' + END,
               module=LDS), {},
    ),
    "the descriptor is larger than the buffer": (
        kernel(RSRC.format(records=4096) + "%o = mul i32 %t, 4\n" + LOAD), "%v = call", "reads 4 bytes out of bounds",
        kernel(RSRC.format(records=800) + "%o = mul i32 %t, 4\n" + LOAD), {"size": 200},
    ),
    "an offset wraps at 2**32": (
        kernel(RSRC.format(records=4096) + "%o = mul i32 %t, 1073741824\n" + LOAD), "%o = mul",
        "address arithmetic overflows 32 bits",
        kernel(RSRC.format(records=4096) + "%o = mul i32 %t, 4\n" + LOAD), {"checks": "all"},
    ),
    "a shifted index wraps at 2**32": (
        kernel("%s = shl i32 %t, 30\n%z = zext i32 %s to i64\n%p = getelementptr i8, ptr addrspace(1) %out, i64 %z\n"
               "%v = load i32, ptr addrspace(1) %p\nret void"), "%s = shl", "address arithmetic overflows 32 bits",
        kernel("%s = shl i32 %t, 2\n%z = zext i32 %s to i64\n%p = getelementptr i8, ptr addrspace(1) %out, i64 %z\n"
               "%v = load i32, ptr addrspace(1) %p\nret void"), {"checks": "all", "block": 8},
    ),
    "16 bytes are read at a multiple of 8": (
        kernel("%o = mul i32 %l, 8\n" + lds("%o", type_="i8") + "store <2 x i32> zeroinitializer, ptr addrspace(3) %p, "
               "align 8\n%v = load <4 x i32>, ptr addrspace(3) %p, align 16\nret void", module=LDS),
        "%v = load", "is not a multiple of 16",
        kernel("%o = mul i32 %l, 16\n" + lds("%o", type_="i8") + "store <4 x i32> zeroinitializer, "
               "ptr addrspace(3) %p, align 8\n%v = load <4 x i32>, ptr addrspace(3) %p, align 16\n"
               + END, module=LDS),
        {"block": 64},
    ),
    "DMA is read by another wave without a wait": (
        kernel(DMA + BARE + MIRROR + END, module=LDS), "%v = load", "LDS race",
        kernel(DMA + "call void @llvm.amdgcn.s.waitcnt(i32 3952)\n" + BARE + MIRROR + END, module=LDS), {},
    ),
    "DMA is waited for with the wrong counter": (
        kernel(DMA + "call void @llvm.amdgcn.s.waitcnt(i32 49279)\n" + BARE + MIRROR + END, module=LDS), "%v = load",
        "LDS race", kernel(DMA + FENCED_BARRIER + MIRROR + END, module=LDS), {},
    ),
    "DMA overwrites what others still read": (
        kernel(STORE + FENCED_BARRIER + MIRROR + DMA + END, module=LDS), "global.load.lds", "LDS race",
        kernel(STORE + FENCED_BARRIER + MIRROR + FENCED_BARRIER + DMA + END, module=LDS), {},
    ),
    "a store overtakes the wave's own asynchronous DMA": (
        kernel(DMA.replace("global.load.lds", "global.load.async.lds") + STORE + END, module=LDS), "store i32 %t",
        "before the asynchronous DMA of the same wave is complete",
        kernel(DMA.replace("global.load.lds", "global.load.async.lds") + "call void @llvm.amdgcn.s.waitcnt(i32 3952)\n"
               + STORE + END, module=LDS), {},
    ),
    "only the writers' side has fences": (
        kernel(either("ult i32 %w, 2", STORE + RELEASE + BARE, BARE + MIRROR), module=LDS), "%v = load", "LDS race",
        kernel(either("ult i32 %w, 2", STORE + RELEASE + BARE, BARE + ACQUIRE + MIRROR), module=LDS), {},
    ),
    "LDS through flat pointers": (
        kernel("%f = addrspacecast ptr addrspace(3) @lds to ptr\n%p = getelementptr i32, ptr %f, i32 %t\n"
               f"store i32 %t, ptr %p\n{BARE}%m = sub i32 255, %t\n%q = getelementptr i32, ptr %f, i32 %m\n"
               "%v = load i32, ptr %q\nret void", module=LDS), "%v = load", "LDS race",
        kernel("%f = addrspacecast ptr addrspace(3) @lds to ptr\n%p = getelementptr i32, ptr %f, i32 %t\n"
               f"store i32 %t, ptr %p\n{FENCED_BARRIER}%m = sub i32 255, %t\n%q = getelementptr i32, ptr %f, i32 %m\n"
               "%v = load i32, ptr %q\nret void", module=LDS), {},
    ),
    "memcpy into LDS": (
        kernel("%o = mul i32 %t, 4\n" + lds("%o", type_="i8") + "call void @llvm.memcpy.p3.p1.i32(ptr addrspace(3) %p, "
               "ptr addrspace(1) %out, i32 4, i1 false)\n" + MIRROR + END, module=LDS), "%v = load", "LDS race",
        kernel("%o = mul i32 %t, 4\n" + lds("%o", type_="i8") + "call void @llvm.memcpy.p3.p1.i32(ptr addrspace(3) %p, "
               "ptr addrspace(1) %out, i32 4, i1 false)\n" + FENCED_BARRIER + MIRROR + END, module=LDS), {},
    ),
    "waves talk through global memory": (
        kernel(GLOBAL + f"store i32 %t, ptr addrspace(1) %g\n{BARE}%m = sub i32 255, %t\n"
               "%q = getelementptr i32, ptr addrspace(1) %out, i32 %m\n%v = load i32, ptr addrspace(1) %q\nret void"),
        "%v = load", "race on byte",
        kernel(GLOBAL + f"store i32 %t, ptr addrspace(1) %g\n{FENCED_BARRIER}%m = sub i32 255, %t\n"
               "%q = getelementptr i32, ptr addrspace(1) %out, i32 %m\n%v = load i32, ptr addrspace(1) %q\nret void"),
        {"checks": "all"},
    ),
    "a global store without an atomic": (
        kernel("%v = load i32, ptr addrspace(1) %out\n%x = add i32 %v, 1\n"
               "store i32 %x, ptr addrspace(1) %out\nret void"),
        "%v = load|store i32 %x", "race",
        kernel("%o = atomicrmw add ptr addrspace(1) %out, i32 1 syncscope(\"agent\") monotonic\nret void"),
        {"checks": "all", "grid": 4, "block": 1},
    ),
    "zero in ctlz that promised none": (
        kernel("%v = call i32 @llvm.ctlz.i32(i32 %t, i1 true)\n" + STORE_OUT.format(value="%v")), "store i32 %v",
        "the stored value is poison.*lane 0",
        kernel("%v = call i32 @llvm.ctlz.i32(i32 %t, i1 false)\n" + STORE_OUT.format(value="%v")), {},
    ),
    "the least number in abs that promised none": (
        kernel("%n = or i32 %t, -2147483648\n%v = call i32 @llvm.abs.i32(i32 %n, i1 true)\n"
               + STORE_OUT.format(value="%v")),
        "store i32 %v", "the stored value is poison.*lane 0",
        kernel("%n = sub i32 0, %t\n%v = call i32 @llvm.abs.i32(i32 %n, i1 true)\n" + STORE_OUT.format(value="%v")), {},
    ),
}  # fmt: skip
PROMISES = [
    ("udiv exact i32 %t, 3", "udiv exact i32 %f, 4"), ("sdiv exact i32 %t, -3", "sdiv exact i32 %f, -4"),
    ("lshr exact i32 %t, 2", "lshr exact i32 %f, 2"), ("ashr exact i32 %t, 2", "ashr exact i32 %f, 2"),
    ("or disjoint i32 %t, 3", "or disjoint i32 %f, 3"), ("zext nneg i32 %n to i64", "zext nneg i32 %t to i64"),
    ("uitofp nneg i32 %n to float", "uitofp nneg i32 %t to float"),
    ("icmp samesign ult i32 %n, %t", "icmp samesign ult i32 %f, %t"),
    ("trunc nuw i32 %t to i7", "trunc nuw i32 %t to i8"), ("trunc nsw i32 %t to i8", "trunc nsw i32 %t to i9"),
    ("add nuw i32 %t, -1", "add nuw i32 %t, 1"), ("shl nsw i32 %t, 28", "shl nsw i32 %t, 20"),
]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_found_and_the_right_kernel_is_not_blamed(name: str) -> None:
    wrong, fragment, message, right, options = CASES[name]
    for_right = {**options, **options.get("right", {})}
    options, for_right = ({k: v for k, v in o.items() if k != "right"} for o in (options, for_right))
    with pytest.raises(SimError, match=message) as caught:
        run(wrong, **options)
    lines = {line_of(wrong, part) for part in fragment.split("|")}
    assert any(str(caught.value).startswith(f"k.ll:{line}: ") for line in lines), str(caught.value)
    run(right, **for_right)


@pytest.mark.parametrize(("broken", "kept"), PROMISES)
def test_broken_promises_of_instructions_are_found(broken: str, kept: str) -> None:
    def text(inst: str) -> str:
        return kernel(f"%f = shl i32 %t, 2\n%n = sub i32 %t, 300\n%v = {inst}\nret void")

    with pytest.raises(SimError, match="promise") as caught:
        run(text(broken), checks="all")
    assert broken in str(caught.value)
    run(text(broken))
    run(text(kept), checks="all")


def test_a_promise_about_an_element_that_nobody_reads_is_not_broken() -> None:
    """Vectorisers join a shift to the left and one to the right, and take one element of each."""
    text = (
        "%v0 = insertelement <2 x i32> poison, i32 %t, i32 0\n%v = insertelement <2 x i32> %v0, i32 %f, i32 1\n"
        "%right = lshr exact <2 x i32> %v, <i32 2, i32 2>\n%left = shl nuw <2 x i32> %v, <i32 2, i32 30>\n"
        "%s = shufflevector <2 x i32> %left, <2 x i32> %right, <2 x i32> <i32 0, i32 3>\n{use}ret void"
    )
    run(kernel("%f = shl i32 %t, 2\n" + text.format(use="")), checks="all")
    for use in ("%e = extractelement <2 x i32> %right, i32 0\n", "%e = add <2 x i32> %right, %v\n"):
        with pytest.raises(SimError, match="what 'exact' promises"):
            run(kernel("%f = shl i32 %t, 2\n" + text.format(use=use)), checks="all")
