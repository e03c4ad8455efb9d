"""Places in profiles, facts about hardware, and other users of LLVM in the same process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import flyllvm
import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.atoms import all_rows
from flyllvm.cli.main import main


def doubled(x: fx.Tensor, i: fx.Int32):
    value = x[i] * 2
    return value + 1


@flyc.kernel(known_block_size=(64, 1, 1))
def calls_a_function(x: fx.Tensor, y: fx.Tensor, n: fx.Int32):
    i = fx.thread_idx.x
    total = doubled(x, i)
    for k in range(n):
        total = total + doubled(x, i + k)
    if total > 5:
        total = total - 5
    y[i] = total


def test_every_instruction_has_the_line_of_a_statement_also_in_called_functions() -> None:
    artifact = flyc.compile(calls_a_function, "i32[?]", "i32[?]", fx.Int32, arch="gfx942", stop_after="llvm")
    text = artifact.llvm_ir
    body = text[text.index("define ") :]
    body = body[: body.index("\n}")]
    instructions = [line for line in body.splitlines()[1:] if re.match(r"  \S", line)]
    without = [line for line in instructions if "!dbg" not in line and not line.lstrip().startswith(("br ", "ret "))]
    assert len(instructions) > 15 and not without
    places = dict(re.findall(r"(!\d+) = (?:distinct )?!DILocation\((.*)\)", text))
    used = {places[name] for line in instructions for name in re.findall(r"!dbg (!\d+)", line)}
    lines = {int(m[1]) for place in used if (m := re.search(r"line: (\d+)", place))}
    kernel, helper = calls_a_function.fn.__code__, doubled.__code__
    statements = {n for code in (kernel, helper) for _, _, n in code.co_lines() if n is not None}
    heads = {kernel.co_firstlineno, kernel.co_firstlineno + 1, helper.co_firstlineno}
    assert lines <= statements - heads
    assert {helper.co_firstlineno + 1, helper.co_firstlineno + 2} <= lines
    # Lines of the called function say from where it was called.
    assert all("inlinedAt" in p for p in used if re.search(rf"line: {helper.co_firstlineno + 1}\b", p))


def test_every_atom_says_whether_hardware_has_seen_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["atoms", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == len(list(all_rows()))
    assert all(isinstance(row["checked_on_hardware"], bool) for row in rows)


OTHER = """
import llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
machine = llvm.Target.from_default_triple().create_target_machine()
"""
OURS = """
import sys
import flyllvm
import flyllvm.compiler as flyc
import flyllvm.expr as fx
from kernels import fill
made = flyc.compile(fill, "f32[64]", arch="gfx942").code_object
assert made.kernels["fill"].vgpr_count > 0
"""
KERNELS = """
import flyllvm.compiler as flyc
import flyllvm.expr as fx

@flyc.kernel(known_block_size=(64, 1, 1))
def fill(x: fx.Tensor):
    x[fx.thread_idx.x] = 1.0
"""
BOTH = """
module = llvm.parse_assembly("define i32 @seven() { ret i32 7 }")
engine = llvm.create_mcjit_compiler(module, machine)
import ctypes
assert ctypes.CFUNCTYPE(ctypes.c_int32)(engine.get_function_address("seven"))() == 7
assert flyc.compile(fill, "f32[128]", arch="gfx950").code_object.kernels["fill"].vgpr_count > 0
print("both work")
"""


@pytest.mark.llvm
@pytest.mark.parametrize("order", ["other first", "ours first"])
def test_another_user_of_llvm_in_the_process_is_not_disturbed(order: str, tmp_path: Path) -> None:
    first, second = (OTHER, OURS) if order == "other first" else (OURS, OTHER)
    # Before the other user comes, nothing of ours has loaded an LLVM.
    apart = "assert 'llvmlite' not in sys.modules\n" if order == "ours first" else ""
    folder = os.fspath(tmp_path)
    (tmp_path / "kernels.py").write_text(KERNELS, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, os.fspath(Path(flyllvm.__file__).parents[1])])}
    done = subprocess.run(
        [sys.executable, "-c", first + apart + second + BOTH], capture_output=True, text=True, env=env, timeout=60
    )
    assert (done.stdout, done.returncode) == ("both work\n", 0), done.stderr
