"""flyllvm's side of ``bench_peers.py``: the same kernels, the compile worker's CPU time included."""

import json
import os
import resource
import sys
import time

MODE, ARCH = sys.argv[1:3]
os.environ["FLYLLVM_CACHE"] = "0"


def own_ms():
    """CPU time of this process and of children that have ended."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage) * 1e3


START = own_ms()
import gemm_big  # noqa: E402

from flyllvm.codegen.client import default_pool  # noqa: E402

IMPORT = own_ms() - START


def cpu_ms():
    """CPU time of this process and its compile worker."""
    workers = default_pool()._idle if sys.modules.get("flyllvm.codegen.client") else []
    return own_ms() + sum(time.clock_gettime_ns((~w.pid << 3) | 2) / 1e6 for w in workers)


def timed(work):
    """(CPU milliseconds, result) of a call."""
    start = cpu_ms()
    made = work()
    return cpu_ms() - start, made


def uses(artifact):
    """Registers and spills of a kernel."""
    (k,) = artifact.code_object.kernels.values()
    return {"vgprs": k.vgpr_count, "spills": k.vgpr_spill_count, "scratch_bytes": k.scratch_bytes}


def main():
    """Compiles and prints."""
    first, art = timed(lambda: gemm_big.compile_tile(128, 128, 32, ARCH))
    out = {"import": IMPORT, "first": first, "first uses": uses(art)}
    if MODE == "inside":
        out["again"] = min(timed(lambda: gemm_big.compile_tile(128, 128, 32, ARCH))[0] for _ in range(3))
        out["next kernel"], _ = timed(lambda: gemm_big.compile_add(ARCH))
        out["big"], art = timed(lambda: gemm_big.compile_tile(256, 256, 64, ARCH))
        out["big uses"] = uses(art)
    print(json.dumps(out))


main()
