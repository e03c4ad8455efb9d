"""Triton's side of ``bench_peers.py``: the same tiles, compiled without a GPU, caches off."""

import json
import os
import re
import resource
import sys
import tempfile
import warnings


def cpu_ms():
    """CPU time of this process and its children."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage) * 1e3


MODE, ARCH = sys.argv[1:3]
START = cpu_ms()
SCRATCH = tempfile.TemporaryDirectory()
os.environ.update(TRITON_ALWAYS_COMPILE="1", TRITON_CACHE_DIR=SCRATCH.name, TRITON_DEFAULT_FP_FUSION="1")
warnings.simplefilter("ignore")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

IMPORT = cpu_ms() - START


@triton.jit
def gemm(a, b, c, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A * B^T; no masks."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    at_a = a + rows[:, None] * sa + k[None, :]
    at_b = b + columns[None, :] * sb + k[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        acc += tl.dot(tl.load(at_a), tl.load(at_b))
        at_a += BK
        at_b += BK
    tl.store(c + rows[:, None] * sc + columns[None, :], acc.to(tl.float16))


@triton.jit
def add(a, b, c, n, B: tl.constexpr):
    """Vector add, masked."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    tl.store(c + i, tl.load(a + i, mask=inside) + tl.load(b + i, mask=inside), mask=inside)


def compiled(fn, names, constants):
    """(CPU milliseconds, kernel)."""
    signature = {**names, **dict.fromkeys(constants, "constexpr")}
    keys = list(signature)
    source = ASTSource(
        fn,
        signature,
        {(keys.index(k),): v for k, v in constants.items()},
        {(i,): [["tt.divisibility", 16]] for i in range(len(names))},
    )
    start = cpu_ms()
    made = triton.compile(source, target=GPUTarget("hip", ARCH, 64), options={"num_warps": 4, "num_stages": 2})
    return cpu_ms() - start, made


def tile(bm, bn, bk):
    """The GEMM."""
    numbers = dict.fromkeys(("M", "N", "K", "sa", "sb", "sc"), "i32")
    return compiled(gemm, {"a": "*fp16", "b": "*fp16", "c": "*fp16", **numbers}, {"BM": bm, "BN": bn, "BK": bk})


def uses(kernel):
    """Registers and spills of a kernel."""
    found = dict(
        re.findall(r"\.(vgpr_count|vgpr_spill_count|private_segment_fixed_size):\s*(\d+)", kernel.asm["amdgcn"])
    )
    return {
        "vgprs": int(found["vgpr_count"]),
        "spills": int(found["vgpr_spill_count"]),
        "scratch_bytes": int(found["private_segment_fixed_size"]),
    }


def main():
    """Compiles and prints."""
    first, made = tile(128, 128, 32)
    out = {"import": IMPORT, "first": first, "first uses": uses(made)}
    if MODE == "inside":
        out["again"] = min(tile(128, 128, 32)[0] for _ in range(3))
        out["next kernel"] = compiled(add, {"a": "*fp32", "b": "*fp32", "c": "*fp32", "n": "i32"}, {"B": 1024})[0]
        out["big"], made = tile(256, 256, 64)
        out["big uses"] = uses(made)
    print(json.dumps(out))


main()
