"""Runs functions of LLVM IR on the host through LLVM's JIT, in a process of its own.

Input (stdin, pickle): ``(module text, [(function, [input arrays], output array), ...])``; a function ``@name`` is
called through ``@host_name(ptr, ..., ptr out, i64 i)`` for every i.  Output: the list of output arrays.
"""

from __future__ import annotations

import ctypes
import pickle
import subprocess
import sys
from typing import Any

Case = tuple[str, list[Any], Any]


def run_on_host(text: str, cases: list[Case]) -> list[Any]:
    """Output arrays of the cases, computed by the host CPU."""
    done = subprocess.run(
        [sys.executable, __file__], input=pickle.dumps((text, cases)), capture_output=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"status {done.returncode}: {done.stderr.decode()[-2000:]}")
    result: list[Any] = pickle.loads(done.stdout)
    return result


def _main() -> None:
    import llvmlite.binding as llvm

    text, cases = pickle.loads(sys.stdin.buffer.read())
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=0
    )
    module = llvm.parse_assembly(text)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    outputs = []
    for name, inputs, out in cases:
        pointers = [a.ctypes.data for a in (*inputs, out)]
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers), ctypes.c_int64)(
            engine.get_function_address(f"host_{name}")
        )
        for i in range(out.shape[0]):
            function(*pointers, i)
        outputs.append(out)
    sys.stdout.buffer.write(pickle.dumps(outputs))


if __name__ == "__main__":
    _main()
