"""Fly IR to LLVM IR text, and LLVM IR text to object code in a worker process.

``emit_module`` is pure Python; ``compile_llvm`` hands text to the worker, the one place that imports llvmlite.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .client import CompileResult, compile_llvm
    from .emit import emit_module
    from .foreign import check_llvm_text
    from .options import Options

_WHERE = {
    "CompileResult": "client",
    "Options": "options",
    "check_llvm_text": "foreign",
    "compile_llvm": "client",
    "emit_module": "emit",
}

__all__ = ["CompileResult", "Options", "check_llvm_text", "compile_llvm", "emit_module"]


def __getattr__(name: str) -> object:
    """Loads a public name at first use: emission does not need the client, nor the client the emission."""
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(__import__(f"{__name__}.{module}", fromlist=[name]), name)
