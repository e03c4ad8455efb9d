"""flyllvm: GPU kernels from Python to AMD code objects through LLVM, without MLIR.

The names of this page load their room at first use, so that ``import flyllvm`` costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .codeobject import (
        CodeObject as CodeObject,
        CodeObjectInfo as CodeObjectInfo,
        KernelInfo as KernelInfo,
        inspect as inspect,
        link as link,
    )
    from .compiler import compile as compile  # type: ignore[no-redef]  # it shares its name with its module
    from .compiler.aot import load_artifact as load_artifact, save_artifacts as save_artifacts
    from .compiler.autotune import autotune as autotune
    from .compiler.sweep import sweep as sweep
    from .errors import (
        AtomError as AtomError,
        CodegenError as CodegenError,
        FlyError as FlyError,
        LaunchError as LaunchError,
        LayoutError as LayoutError,
        LinkError as LinkError,
        ParseError as ParseError,
        SimError as SimError,
        StateError as StateError,
        TargetError as TargetError,
        TraceError as TraceError,
        VerifyError as VerifyError,
    )
    from .sim import simulate as simulate
    from .target import Target as Target

__version__ = "0.1.0"

# Public name -> module that defines it, below flyllvm.  The imports above say the same to type checkers.
_HOMES = {
    "AtomError": "errors",
    "CodeObject": "codeobject",
    "CodeObjectInfo": "codeobject",
    "CodegenError": "errors",
    "FlyError": "errors",
    "KernelInfo": "codeobject",
    "LaunchError": "errors",
    "LayoutError": "errors",
    "LinkError": "errors",
    "ParseError": "errors",
    "SimError": "errors",
    "StateError": "errors",
    "Target": "target",
    "TargetError": "errors",
    "TraceError": "errors",
    "VerifyError": "errors",
    "autotune": "compiler.autotune",
    "compile": "compiler",
    "inspect": "codeobject",
    "link": "codeobject",
    "load_artifact": "compiler.aot",
    "save_artifacts": "compiler.aot",
    "simulate": "sim",
    "sweep": "compiler.sweep",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'flyllvm' has no attribute {name!r}")
    value: object = getattr(__import__(f"flyllvm.{home}", fromlist=[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
