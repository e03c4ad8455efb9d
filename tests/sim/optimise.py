"""LLVM's own optimiser for gfx942, in a process of its own: text in on stdin, text out on stdout."""

from __future__ import annotations

import subprocess
import sys


def optimised(text: str) -> str:
    """The module after LLVM's O3 pipeline."""
    done = subprocess.run([sys.executable, __file__], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"status {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def _main() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu="gfx942", opt=3)
    module = llvm.parse_assembly(sys.stdin.read())
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(module, builder)
    print(module)


if __name__ == "__main__":
    _main()
