"""Code objects without LLVM and lld: link, read, describe, match with a device, pack arguments.

`link` turns the object file that LLVM emits into a code object that HIP loads; `inspect` reads either; `CodeObject` is
an image with its kernels.  Malformed input ends as ``LinkError``, never as anything else.
"""

from __future__ import annotations

from .code_object import CodeObject, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .info import CodeObjectInfo as CodeObjectInfo
    from .kernarg import hidden_args as hidden_args, pack_kernarg as pack_kernarg
    from .kernel import KernelArg as KernelArg, KernelDescriptor as KernelDescriptor, KernelInfo as KernelInfo
    from .linker import link as link
    from .reader import inspect as inspect
    from .target_id import TargetId as TargetId, matches as matches, mismatch as mismatch

# Name -> module, loaded at first use: an image out of the cache is given on as it is.
_HOMES = {
    "CodeObjectInfo": "info",
    "KernelArg": "kernel",
    "KernelDescriptor": "kernel",
    "KernelInfo": "kernel",
    "TargetId": "target_id",
    "hidden_args": "kernarg",
    "inspect": "reader",
    "link": "linker",
    "matches": "target_id",
    "mismatch": "target_id",
    "pack_kernarg": "kernarg",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(__import__(f"{__name__}.{home}", fromlist=[name]), name)
    globals()[name] = value
    return value


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
