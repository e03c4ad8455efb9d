"""Opening HIP: what is said where something is missing.  Each case is a process: a library stays once it is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flyllvm.runtime import HipError, hip as hip_module, unavailable
from flyllvm.runtime.hip import Hip
from tests.hip_double.build import Double, compiler
from tests.hip_double.fixtures import restart

REPORT = """
import flyllvm.runtime as runtime
from flyllvm.errors import LaunchError
try:
    runtime.devices()
except LaunchError as error:
    print(error)
else:
    print("found", runtime.devices())
"""


def report(program: str = REPORT, **environment: str) -> str:
    base = {k: v for k, v in os.environ.items() if k not in ("ROCM_PATH", "ROCM_HOME", "LD_LIBRARY_PATH")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=base | environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def library(folder: Path, source: str) -> None:
    (folder / "lib").mkdir()
    (folder / "hip.c").write_text(source)
    command = [compiler(), "-shared", "-fPIC", "-o", str(folder / "lib" / "libamdhip64.so"), str(folder / "hip.c")]
    subprocess.run(command, check=True)


def test_importing_the_room_touches_neither_hip_nor_numpy() -> None:
    program = "import sys, flyllvm.runtime, flyllvm.runtime.module\n"
    program += "print([m for m in ('rocm', 'hip', 'numpy') if m in sys.modules])"
    assert report(program) == "[]\n"


def test_a_missing_library_is_one_sentence_with_the_places(tmp_path: Path) -> None:
    said = report(ROCM_PATH=str(tmp_path))
    assert f"libamdhip64.so was not found in $ROCM_PATH ({tmp_path}/lib), $ROCM_HOME (not set)" in said
    assert "fix: install ROCm 6.0 or later, or point ROCM_PATH at a directory with lib/libamdhip64.so" in said


def test_a_versioned_library_alone_asks_for_a_link(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libamdhip64.so.6").touch()
    said = report(ROCM_PATH=str(tmp_path))
    assert f"only {tmp_path}/lib/libamdhip64.so.6 is there: make a link named libamdhip64.so to it" in said


def test_a_missing_binding_is_said() -> None:
    said = report("import sys\nsys.modules['rocm'] = sys.modules['hip'] = None\n" + REPORT)
    assert "hip-python is not installed" in said and "fix: pip install hip-python" in said


def test_an_old_runtime_is_refused(tmp_path: Path) -> None:
    library(tmp_path, "int hipRuntimeGetVersion(int *v) { *v = 50200000; return 0; }")
    said = report(ROCM_PATH=str(tmp_path))
    assert "the HIP runtime is version 5.2; flyllvm needs 6.0" in said and "install ROCm 6.0" in said


def test_a_library_that_lacks_a_function_is_named(tmp_path: Path) -> None:
    library(tmp_path, "int hipRuntimeGetVersion(int *v) { *v = 70000000; return 0; }")
    said = report(ROCM_PATH=str(tmp_path))
    assert "the HIP library lacks hipInit" in said and "install ROCm 6.0 or later" in said


def test_no_device_is_said(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    restart(double, monkeypatch, "gfx942", devices=0)
    with pytest.raises(
        HipError, match=r"(?s)hipInit failed: hipErrorNoDevice.*no AMD GPU is visible: check the driver"
    ):
        hip_module.hip()
    assert "hipErrorNoDevice" in str(unavailable())


def test_a_failed_start_is_tried_again(double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    restart(double, monkeypatch, "gfx942", devices=0)
    assert unavailable()
    double.configure("gfx942", 1)
    assert unavailable() is None


def test_an_error_carries_its_name_and_cause(double: Double) -> None:
    with pytest.raises(HipError, match=r"(?s)hipMalloc failed: hipErrorOutOfMemory.*no memory left") as caught:
        hip_module.hip().call("hipMalloc", 1 << 40)
    assert caught.value.name == "hipErrorOutOfMemory"


def test_an_error_survives_pickling() -> None:
    import pickle

    error = HipError("what", "where", "fix", "hipErrorUnknown")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.name) == (str(error), "hipErrorUnknown")


def test_a_function_that_the_binding_lacks_is_named(double: Double) -> None:
    with pytest.raises(HipError, match=r"(?s)hip-python has no hipNoSuchThing.*6.2 or later"):
        hip_module.hip().call("hipNoSuchThing")


def test_an_error_code_that_the_binding_does_not_know_is_an_error() -> None:
    class Binding:
        @staticmethod
        def hipInit(flags: int) -> None:
            raise ValueError("4711 is not a valid hipError_t")

    with pytest.raises(HipError, match=r"(?s)hipInit: 4711.*same major version"):
        Hip(Binding).call("hipInit", 0)


class Old:
    """What hip-python 6 and 7 do otherwise; their own wheels were tried by hand."""

    __name__ = "hip.hip"

    class hipDeviceProp_t:
        name = ""

    @staticmethod
    def hipGetDeviceProperties(properties: Old.hipDeviceProp_t, index: int) -> tuple[int]:
        properties.name = f"device {index}"
        return (0,)

    @staticmethod
    def hipInit(flags: int) -> None:
        raise RuntimeError("failed to dlopen 'libamdhip64.so'")


def test_older_bindings_fill_a_structure_of_the_caller() -> None:
    assert Hip(Old()).properties(3).name == "device 3"


def test_older_bindings_look_on_the_loaders_path_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    with pytest.raises(HipError, match=r"(?s)not found by the dynamic loader.*lib folder in LD_LIBRARY_PATH"):
        Hip(Old()).call("hipInit", 0)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libamdhip64.so").touch()
    with pytest.raises(HipError, match=rf"set LD_LIBRARY_PATH={tmp_path}/lib before Python starts"):
        Hip(Old()).call("hipInit", 0)


def test_an_unknown_name_of_the_room_is_an_attribute_error() -> None:
    import flyllvm.runtime

    with pytest.raises(AttributeError, match=r"'flyllvm.runtime' has no attribute 'nothing'"):
        flyllvm.runtime.nothing  # noqa: B018
