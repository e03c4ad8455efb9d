"""``flyllvm doctor``: what this installation can do, one line a check, with the fix where one is needed.

Status 1 if kernels cannot be compiled here.  A missing GPU, HIP library or NumPy is reported and fails nothing: the
compile path needs none of them.
"""

from __future__ import annotations

import os
import subprocess
import sys

from ..errors import CodegenError, FlyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

_HIP_FILE = "libamdhip64.so"
_REINSTALL = "run: python -m pip install 'llvmlite>=0.50,<0.51'"

# Both probes run in a process of their own: a broken LLVM or HIP library may end the process that loads it.
_LLVM_PROBE = """
import json, llvmlite, llvmlite.binding as llvm
llvm.initialize_all_targets()
try:
    llvm.Target.from_triple("amdgcn-amd-amdhsa")
    amdgcn = True
except RuntimeError:
    amdgcn = False
llvm_version = ".".join(map(str, llvm.llvm_version_info))
print(json.dumps({"llvmlite": llvmlite.__version__, "llvm": llvm_version, "amdgcn": amdgcn}))
"""
_LOAD_PROBE = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"

_TARGET = "gfx942"
_KERNEL = """
target triple = "amdgcn-amd-amdhsa"
define protected amdgpu_kernel void @probe(ptr addrspace(1) %out) {
  store i32 7, ptr addrspace(1) %out, align 4
  ret void
}
"""


class Check:
    """The outcome of one check.

    Attributes:
        name: What was looked at.
        ok: Whether it is usable.
        detail: What was found, and where.
        fix: What to do, or None.
        required: Whether compiling needs it.
    """

    __slots__ = ("detail", "fix", "name", "ok", "required")

    def __init__(self, name: str, ok: bool, detail: str, fix: str | None = None, *, required: bool = False) -> None:
        self.name = name
        self.ok = ok
        self.detail = detail
        self.fix = None if ok else fix
        self.required = required

    @property
    def mark(self) -> str:
        if self.ok:
            return "ok"
        return "FAILED" if self.required else "no"

    def as_json(self) -> dict[str, object]:
        return {slot: getattr(self, slot) for slot in ("name", "ok", "required", "detail", "fix")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(ns: argparse.Namespace) -> int:
    checks = [check_python(), *check_llvm(), check_compile(), check_package("numpy"), check_package("ml_dtypes")]
    checks += [check_hip_python(), check_hip_library()]
    broken = [check.name for check in checks if check.required and not check.ok]
    if ns.json:
        from json import dumps

        print(dumps({"compiles": not broken, "checks": [check.as_json() for check in checks]}, indent=2))
    else:
        _print_table(checks, broken)
    return 1 if broken else 0


def _print_table(checks: list[Check], broken: list[str]) -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        print(f"{check.name:{width}}  {check.mark:6}  {check.detail}")
        if check.fix:
            print(f"{'':{width}}  {'':6}  fix: {check.fix}")
    print(f"cannot compile here: {', '.join(broken)}" if broken else "compiling and linking work here")


def check_python() -> Check:
    version = sys.version_info
    text = f"{sys.implementation.name} {version[0]}.{version[1]}.{version[2]} at {sys.executable}"
    return Check("python", version >= (3, 11), text, "use Python 3.11 or newer", required=True)


def installed_version(distribution: str) -> str | None:
    """Version of an installed distribution, without importing it."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def check_llvm() -> list[Check]:
    """llvmlite in the Python that runs the compile worker, the LLVM in it, and whether that knows AMDGPU."""
    from ..codegen.process import default_python

    try:
        python = default_python()
    except CodegenError as error:
        return [Check("llvmlite", False, error.what, error.fix, required=True)]
    code, out, error_line = _in_child(_LLVM_PROBE, python=python)
    if code != 0:
        return [Check("llvmlite", False, f"does not load in {python}: {error_line}", _REINSTALL, required=True)]
    import json

    found = json.loads(out)
    version, amdgcn = found["llvmlite"], found["amdgcn"]
    right = version.split(".")[:2] == ["0", "50"]
    missing = "this LLVM was built without the AMDGPU backend"
    return [
        Check("llvmlite", right, f"{version} (flyllvm needs 0.50)", _REINSTALL, required=True),
        Check("LLVM", True, found["llvm"], required=True),
        Check(
            "amdgcn target",
            amdgcn,
            "amdgcn-amd-amdhsa" if amdgcn else missing,
            "install llvmlite's wheel from PyPI; some distributions build it without AMDGPU",
            required=True,
        ),
    ]


def check_compile() -> Check:
    """Takes a small kernel the whole way: worker, object file, linker, metadata."""
    from ..codegen.client import compile_llvm
    from ..codeobject import inspect, link
    from ..target import Target

    try:
        image = link(compile_llvm(_KERNEL, Target.parse(_TARGET)).object)
        names = ", ".join(kernel.name for kernel in inspect(image).kernels.values())
    except FlyError as error:
        return Check("compile", False, error.what, error.fix, required=True)
    return Check("compile", True, f"kernel {names} for {_TARGET}, code object of {len(image)} bytes", required=True)


def check_package(name: str) -> Check:
    version = installed_version(name)
    need = "the simulator and host arrays need it"
    if version is None:
        return Check(name, False, f"not installed ({need})", f"run: python -m pip install {name}")
    return Check(name, True, version)


def check_hip_python() -> Check:
    version = installed_version("hip-python")
    if version is not None:
        return Check("hip-python", True, version)
    if sys.platform != "linux":
        return Check("hip-python", False, f"launching on a GPU works on Linux, this is {sys.platform}")
    return Check("hip-python", False, "not installed (launching needs it)", "run: python -m pip install hip-python")


def check_hip_library() -> Check:
    """Looks for the HIP runtime where hip-python looks."""
    variable = next((name for name in ("ROCM_PATH", "ROCM_HOME") if os.environ.get(name)), None)
    root = os.environ[variable] if variable else "/opt/rocm"
    folder = os.path.join(root, "lib")
    path = os.path.join(folder, _HIP_FILE)
    origin = f"${variable}" if variable else "the default place"
    if os.path.exists(path):
        code, _, error = _in_child(_LOAD_PROBE, path)
        detail = path if code == 0 else f"{path} does not load: {error}"
        return Check("HIP library", code == 0, detail, "reinstall ROCm's HIP runtime")
    if _in_child(_LOAD_PROBE, _HIP_FILE)[0] == 0:
        return Check("HIP library", True, f"{_HIP_FILE} on the loader's path")
    looked = f"not found; looked for {path} ({origin}) and for {_HIP_FILE} on the loader's path"
    versioned = _versioned_only(folder)
    if versioned:
        fix = f"{versioned} is there, but hip-python opens {_HIP_FILE} only: make a symlink of that name to it"
    else:
        fix = "to launch on a GPU install ROCm, or set ROCM_PATH to the folder above lib/; simulating needs neither"
    return Check("HIP library", False, looked, fix)


def _versioned_only(folder: str) -> str | None:
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith(_HIP_FILE + "."))
    except OSError:
        return None
    return os.path.join(folder, names[-1]) if names else None


def _in_child(code: str, *args: str, python: str = sys.executable) -> tuple[int, str, str]:
    """Runs Python code in a process of its own: exit status, stdout, last line of stderr."""
    try:
        done = subprocess.run([python, "-c", code, *args], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return -1, "", "no answer in 120 s"
    except OSError as error:
        return -1, "", str(error)
    lines = done.stderr.strip().splitlines()
    return done.returncode, done.stdout, lines[-1] if lines else f"it ended with status {done.returncode}"
