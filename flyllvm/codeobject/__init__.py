"""Code objects without LLVM and lld: link, read, describe, match with a device, pack arguments.

`link` turns the object file that LLVM emits into a code object that HIP loads; `inspect` reads either; `CodeObject` is
an image with its kernels.  Malformed input ends as ``LinkError``, never as anything else.
"""

from __future__ import annotations

from .code_object import CodeObject, load
from .info import CodeObjectInfo
from .kernarg import hidden_args, pack_kernarg
from .kernel import KernelArg, KernelDescriptor, KernelInfo
from .reader import inspect
from .target_id import TargetId, matches, mismatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .linker import link as link


def __getattr__(name: str) -> object:
    # Who only reads code objects needs no linker.
    if name != "link":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .linker import link

    globals()["link"] = link
    return link


__all__ = [
    "CodeObject",
    "CodeObjectInfo",
    "KernelArg",
    "KernelDescriptor",
    "KernelInfo",
    "TargetId",
    "hidden_args",
    "inspect",
    "link",
    "load",
    "matches",
    "mismatch",
    "pack_kernarg",
]
