"""A kernel read back from its text gives the same LLVM IR: the text keeps all that code generation uses."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from flyllvm.codegen.options import Options
from flyllvm.compiler.pipeline import lower
from flyllvm.ir.parser import parse_module
from tests.ir.samples import GFX942

GEMM = Path(__file__).parents[2] / "examples" / "gemm.py"


def _code(llvm_ir: str) -> list[str]:
    """The lines without debug information, which names the .fly text instead of the author's file."""
    lines = (re.sub(r",? ?!(dbg|reqd_work_group_size) !\d+", "", line) for line in llvm_ir.splitlines())
    return [line for line in lines if not line.startswith(("!", "source_filename"))]


def test_the_gemm_read_back_from_its_text_gives_the_same_llvm_ir() -> None:
    spec = importlib.util.spec_from_file_location("gemm", GEMM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    artifact = module.compile_gemm(stop_after="llvm")
    again = lower(parse_module(artifact.fly_ir, "gemm.fly"), GFX942, Options())
    assert _code(again) == _code(artifact.llvm_ir)
    assert len(_code(again)) > 200
