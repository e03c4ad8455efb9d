"""The few functions of llvmlite's library that a compilation needs, called without llvmlite's own Python.

``llvmlite.binding`` imports a builder of LLVM IR, the JIT engines, the pass managers and, through them, a good part of
Python's library: half of a worker's start.  `Lean` has the names of ``llvmlite.binding`` that `worker` uses for a
module that needs no passes; for everything else `worker` loads the whole.  The functions and their types are those of
llvmlite 0.50, the only version that `worker` accepts.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_uint, c_void_p

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OUT = POINTER(c_char_p)
# Name after LLVMPY_ -> (result, arguments).  Source: llvmlite 0.50, binding/*.py.
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ContextCreate": (c_void_p, ()),
    "ContextDispose": (None, (c_void_p,)),
    "CopyStringRepOfTargetData": (None, (c_void_p, _OUT)),
    "CreateTargetMachine": (
        c_void_p, (c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_char_p, c_char_p, c_int, c_int, c_char_p),
    ),
    "CreateTargetMachineData": (c_void_p, (c_void_p,)),
    "DisposeMemoryBuffer": (None, (c_void_p,)),
    "DisposeModule": (None, (c_void_p,)),
    "DisposeString": (None, (c_char_p,)),
    "DisposeTargetData": (None, (c_void_p,)),
    "GetBufferSize": (c_size_t, (c_void_p,)),
    "GetBufferStart": (c_void_p, (c_void_p,)),
    "GetDataLayout": (None, (c_void_p, _OUT)),
    "GetTargetFromTriple": (c_void_p, (c_char_p, _OUT)),
    "GetVersionInfo": (c_uint, ()),
    "InitializeAllAsmPrinters": (None, ()),
    "InitializeAllTargetInfos": (None, ()),
    "InitializeAllTargetMCs": (None, ()),
    "InitializeAllTargets": (None, ()),
    "ParseAssembly": (c_void_p, (c_void_p, c_char_p, _OUT)),
    "PrintModuleToString": (None, (c_void_p, _OUT)),
    "SetCommandLine": (None, (c_char_p, c_char_p)),
    "SetDataLayout": (None, (c_void_p, c_char_p)),
    "TargetMachineEmitToMemory": (c_void_p, (c_void_p, c_void_p, c_int, _OUT)),
    "VerifyModule": (c_bool, (c_void_p, _OUT)),
}  # fmt: skip


class Lean:
    """What `worker` uses of ``llvmlite.binding``, for the process that runs it alone.

    Args:
        package: Directory of llvmlite.

    Raises:
        OSError, AttributeError: The library is not there, or is another.
    """

    def __init__(self, package: str) -> None:
        name = "libllvmlite.dylib" if sys.platform == "darwin" else "libllvmlite.so"
        lib = ctypes.CDLL(os.path.join(package, "binding", name))
        for short, (result, arguments) in _FUNCTIONS.items():
            function = getattr(lib, f"LLVMPY_{short}")
            function.restype, function.argtypes = result, arguments
            setattr(self, short, function)
        self.context = self.Target = self  # `llvm.context.create_context`, `llvm.Target.from_triple`
        packed = self.GetVersionInfo()
        version: list[int] = []
        while packed:
            version.insert(0, packed & 0xFF)
            packed >>= 8
        self.llvm_version_info = tuple(version)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def initialize_all_targets(self) -> None:
        """Makes the targets known."""
        self.InitializeAllTargetInfos()
        self.InitializeAllTargets()
        self.InitializeAllTargetMCs()

    def initialize_all_asmprinters(self) -> None:
        """Makes the writers of object files and assembly known."""
        self.InitializeAllAsmPrinters()

    def set_option(self, name: str, option: str) -> None:
        """Sets an option of LLVM's command line."""
        self.SetCommandLine(name.encode(), option.encode())

    def create_context(self) -> Any:
        """A context for one module, which ends with it."""
        return self.ContextCreate()

    def parse_assembly(self, text: str, context: Any) -> Module:
        """The module of LLVM IR text.

        Raises:
            RuntimeError: With LLVM's words.
        """
        out = c_char_p()
        handle = self.ParseAssembly(context, text.encode(), byref(out))
        made = Module(self, handle, context)
        said = self.words(out)
        if said is not None:
            raise RuntimeError(f"LLVM IR parsing error\n{said}")
        return made

    def words(self, out: c_char_p, owned: bool = True) -> str | None:
        """A text that a function has given back, ``None`` where it has given none."""
        if not out:
            return None
        text = (out.value or b"").decode()
        if owned:
            self.DisposeString(out)
        return text

    def from_triple(self, triple: str) -> Target:
        """The target of a triple.

        Raises:
            RuntimeError: There is none.
        """
        out = c_char_p()
        handle = self.GetTargetFromTriple(triple.encode(), byref(out))
        said = self.words(out)
        if not handle:
            raise RuntimeError(said)
        return Target(self, handle, triple)


class Module:
    """A parsed module; it takes its context with it."""

    def __init__(self, lib: Lean, handle: Any, context: Any) -> None:
        self.lib, self.handle, self.context = lib, handle, context

    def __del__(self) -> None:
        if self.handle:
            self.lib.DisposeModule(self.handle)
        self.lib.ContextDispose(self.context)

    def verify(self) -> None:
        """Checks the rules of LLVM IR.

        Raises:
            RuntimeError: With LLVM's words.
        """
        out = c_char_p()
        bad = self.lib.VerifyModule(self.handle, byref(out))
        said = self.lib.words(out)
        if bad:
            raise RuntimeError(said)

    @property
    def data_layout(self) -> str:
        """Sizes and alignments, as text."""
        out = c_char_p()
        self.lib.GetDataLayout(self.handle, byref(out))
        return self.lib.words(out, owned=False) or ""

    @data_layout.setter
    def data_layout(self, text: str) -> None:
        self.lib.SetDataLayout(self.handle, text.encode())

    def __str__(self) -> str:
        out = c_char_p()
        self.lib.PrintModuleToString(self.handle, byref(out))
        return self.lib.words(out) or ""


class Target:
    """A target, which machines are made from."""

    def __init__(self, lib: Lean, handle: Any, triple: str) -> None:
        self.lib, self.handle, self.triple = lib, handle, triple

    def create_target_machine(self, cpu: str, features: str, opt: int) -> Machine:
        """A machine with llvmlite's defaults.

        Raises:
            RuntimeError: There is no such machine.
        """
        words = [w.encode() for w in (self.triple, cpu, features)]
        handle = self.lib.CreateTargetMachine(self.handle, *words, opt, b"default", b"jitdefault", 0, 0, b"")
        if not handle:
            raise RuntimeError("Cannot create target machine")
        return Machine(self.lib, handle)


class Machine:
    """A target machine; it lives as long as the process."""

    def __init__(self, lib: Lean, handle: Any) -> None:
        self.lib, self.handle = lib, handle
        data, out = lib.CreateTargetMachineData(handle), c_char_p()
        lib.CopyStringRepOfTargetData(data, byref(out))
        #: Its data layout, as text.
        self.target_data = lib.words(out) or ""
        lib.DisposeTargetData(data)

    def emit_object(self, module: Module) -> bytes:
        """The object file of a module, which is changed by it.

        Raises:
            RuntimeError: With LLVM's words.
        """
        return self._emit(module, 1)

    def emit_assembly(self, module: Module) -> str:
        """The assembly of a module, which is changed by it.

        Raises:
            RuntimeError: With LLVM's words.
        """
        return self._emit(module, 0).decode()

    def _emit(self, module: Module, as_object: int) -> bytes:
        out = c_char_p()
        buffer = self.lib.TargetMachineEmitToMemory(self.handle, module.handle, as_object, byref(out))
        said = self.lib.words(out)
        if not buffer:
            raise RuntimeError(said)
        data = ctypes.string_at(self.lib.GetBufferStart(buffer), self.lib.GetBufferSize(buffer))
        self.lib.DisposeMemoryBuffer(buffer)
        return data
