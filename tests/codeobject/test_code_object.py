"""`CodeObject` and `inspect`: fields, files, JSON and the table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flyllvm.codeobject import CodeObject, KernelInfo, inspect, link, load
from flyllvm.errors import LinkError, TargetError
from tests.codeobject.images import NAMES, lld_bytes, object_bytes


def gemm() -> CodeObject:
    return CodeObject.from_image(link(object_bytes("gemm_gfx942")))


def test_the_gemm_is_described() -> None:
    code = gemm()
    kernel = code.kernels["gemm"]
    assert str(code.target) == "gfx942" and code.target.wave_size == 64
    assert code.code_object_version == 5
    assert code.metadata["amdhsa.target"] == "amdgcn-amd-amdhsa--gfx942"
    assert (kernel.vgpr_count, kernel.agpr_count, kernel.vgpr_spill_count, kernel.sgpr_spill_count) == (104, 0, 0, 0)
    assert (kernel.lds_bytes, kernel.scratch_bytes, kernel.kernarg_bytes) == (16384, 0, 36)
    assert (kernel.wave_size, kernel.max_workgroup_size, kernel.uniform_work_group_size) == (64, 256, True)
    assert kernel.explicit_kernarg_bytes == 36 and not kernel.hidden_args
    assert [(a.name, a.offset, a.size, a.kind) for a in kernel.args] == [
        ("a", 0, 8, "global_buffer"), ("b", 8, 8, "global_buffer"), ("c", 16, 8, "global_buffer"),
        ("M", 24, 4, "by_value"), ("N", 28, 4, "by_value"), ("K", 32, 4, "by_value"),
    ]  # fmt: skip
    assert kernel.args[0].access == "read_only" and kernel.args[0].address_space == "global"
    assert kernel.args[0].is_pointer and not kernel.args[3].is_pointer
    assert kernel.code_bytes is not None and kernel.code_bytes > 1000


def test_the_descriptor_agrees_with_the_metadata() -> None:
    for name in NAMES:
        if name == "absolute":
            continue
        for kernel in inspect(link(object_bytes(name))).kernels.values():
            descriptor = kernel.descriptor
            assert descriptor is not None
            assert (descriptor.lds_bytes, descriptor.scratch_bytes) == (kernel.lds_bytes, kernel.scratch_bytes)
            assert (descriptor.kernarg_bytes, descriptor.wave_size) == (kernel.kernarg_bytes, kernel.wave_size)
            assert descriptor.uses_dynamic_stack == kernel.uses_dynamic_stack


@pytest.mark.parametrize(
    ("name", "version"), [("vector_add_gfx942_v4", 4), ("vector_add_gfx942", 5), ("vector_add_gfx942_v6", 6)]
)
def test_every_code_object_version_is_read(name: str, version: int) -> None:
    assert inspect(object_bytes(name)).code_object_version == version
    assert CodeObject.from_image(link(object_bytes(name))).code_object_version == version


def test_an_object_file_is_described_before_it_is_linked() -> None:
    before, after = inspect(object_bytes("three_kernels_gfx942")), inspect(lld_bytes("three_kernels_gfx942"))
    assert not before.linked and after.linked
    assert {n: k.code_bytes for n, k in before.kernels.items()} == {n: k.code_bytes for n, k in after.kernels.items()}
    assert before.exported == after.exported
    assert before.undefined == []


def test_an_image_without_section_headers_is_still_described() -> None:
    image = bytearray(link(object_bytes("gemm_gfx942")))
    image[0x28:0x30] = bytes(8)
    image[0x3C:0x40] = bytes(4)
    kernel = inspect(bytes(image)).kernels["gemm"]
    assert kernel.vgpr_count == 104 and kernel.descriptor is None and kernel.code_bytes is None


def test_saved_and_loaded_files_are_equal(tmp_path: Path) -> None:
    path = tmp_path / "gemm.hsaco"
    code = gemm()
    code.save(path)
    assert load(path).image == CodeObject.load(str(path)).image == code.image == path.read_bytes()
    assert os.listdir(tmp_path) == ["gemm.hsaco"]


def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "gemm.hsaco"
    path.write_bytes(b"old")

    def no_space(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", no_space)
    with pytest.raises(LinkError, match=r"(?s)gemm.hsaco: cannot write the file: No space left.*free space"):
        gemm().save(path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["gemm.hsaco"]


def test_saving_into_a_missing_directory_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(
        LinkError, match=r"(?s)missing/k.hsaco: cannot write the file: No such file.*check the directory"
    ):
        gemm().save(tmp_path / "missing" / "k.hsaco")


def test_saving_to_a_device_writes_through_it() -> None:
    gemm().save(os.devnull)
    assert not os.path.isfile(os.devnull)


def test_loading_names_the_file_and_the_place(tmp_path: Path) -> None:
    with pytest.raises(LinkError, match=r"(?s)none.hsaco: cannot read the file: No such file.*check the path"):
        load(tmp_path / "none.hsaco")
    (tmp_path / "bad.hsaco").write_bytes(b"rubbish")
    with pytest.raises(LinkError, match=r"bad.hsaco: byte 0x0: not an ELF file"):
        load(tmp_path / "bad.hsaco")
    (tmp_path / "k.o").write_bytes(object_bytes("gemm_gfx942"))
    with pytest.raises(LinkError, match=r"(?s)k.o: the file is an object file.*link it first"):
        load(tmp_path / "k.o")


def test_a_target_without_facts_is_still_named() -> None:
    code = CodeObject.from_image(link(object_bytes("vector_add_generic")))
    assert str(code.target_id) == "gfx9-4-generic"
    with pytest.raises(TargetError, match=r"unknown target 'gfx9-4-generic'"):
        assert code.target


@pytest.mark.parametrize("name", [n for n in NAMES if n != "absolute"])
def test_json_holds_the_contract_fields(name: str) -> None:
    info = inspect(link(object_bytes(name)))
    data = json.loads(info.to_json())
    assert data == json.loads(json.dumps(info.to_dict()))
    assert [k["name"] for k in data["kernels"]] == list(info.kernels)
    for kernel in data["kernels"]:
        assert {
            "name", "vgpr_count", "agpr_count", "sgpr_count", "vgpr_spill_count", "sgpr_spill_count", "lds_bytes",
            "scratch_bytes", "kernarg_bytes", "args", "wave_size", "max_workgroup_size",
        } <= set(kernel)  # fmt: skip
        for arg in kernel["args"]:
            assert {"name", "offset", "size", "kind"} <= set(arg)


def test_the_table_shows_registers_and_arguments() -> None:
    lines = gemm().info.render().splitlines()
    assert lines[0].startswith("code object for gfx942, code object version 5, ")
    assert lines[2].split() == (
        "kernel wave VGPR AGPR SGPR VGPR spill SGPR spill LDS B scratch B kernarg B max workgroup code B".split()
    )
    assert lines[3].split()[:8] == ["gemm", "64", "104", "0", "33", "0", "0", "16384"]
    assert any(line.split() == ["24", "4", "M", "by_value"] for line in lines)


def test_the_table_tells_an_object_file_and_hidden_arguments() -> None:
    text = inspect(object_bytes("three_kernels_gfx942")).render()
    assert "object file (not linked yet)" in text
    assert "and 20 hidden arguments" in text
    assert "no kernels" in inspect(object_bytes("one_global")).render()


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        (".vgpr_count", -1, ".vgpr_count is -1, expected a number from 0"),
        (".vgpr_count", True, ".vgpr_count is True"),
        (".name", 7, ".name is 7, expected text"),
        (".args", {}, ".args is no list of maps"),
        (".uses_dynamic_stack", "yes", ".uses_dynamic_stack is 'yes', expected true or false"),
        (".reqd_workgroup_size", 3, ".reqd_workgroup_size is 3, expected a list"),
        (".reqd_workgroup_size", [1, 2], r"required workgroup \[1, 2\]"),
    ],
)
def test_metadata_of_the_wrong_type_is_refused(key: str, value: object, match: str) -> None:
    entry = dict(gemm().metadata["amdhsa.kernels"][0])  # type: ignore[index]
    entry[key] = value
    with pytest.raises(LinkError, match=match):
        KernelInfo(entry)


def test_a_required_workgroup_size_is_read() -> None:
    entry = dict(gemm().metadata["amdhsa.kernels"][0])  # type: ignore[index]
    assert KernelInfo(entry | {".reqd_workgroup_size": [64, 2, 1]}).reqd_workgroup_size == (64, 2, 1)
    assert KernelInfo(entry).reqd_workgroup_size is None


def test_the_room_works_without_llvmlite_and_numpy(tmp_path: Path) -> None:
    """Also link, inspect and the commands: the whole life of an artefact."""
    source = tmp_path / "k.o"
    source.write_bytes(object_bytes("three_kernels_gfx942"))
    program = f"""
import sys
blocked = ("llvmlite", "numpy", "ml_dtypes", "hip", "rocm")
sys.modules.update(dict.fromkeys(blocked))
from flyllvm.codeobject import load, link, pack_kernarg
from flyllvm.cli.main import main
assert main(["link", {str(source)!r}, "-o", {str(tmp_path / "k.hsaco")!r}]) == 0
assert main(["inspect", {str(tmp_path / "k.hsaco")!r}]) == 0
kernel = load({str(tmp_path / "k.hsaco")!r}).kernels["lookup"]
assert pack_kernarg(kernel, [4096, 2]) == bytes([0, 16, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0])
assert all(sys.modules[name] is None for name in blocked)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "lookup" in done.stdout


def test_the_table_tells_what_is_undefined_and_what_a_launch_must_be() -> None:
    info = gemm().info
    info.undefined = ["sinf", "llvm.amdgcn.nothing"]
    kernel = info.kernels["gemm"]
    kernel.reqd_workgroup_size = (256, 1, 1)
    assert "undefined: sinf, llvm.amdgcn.nothing" in info.render()
    assert "the workgroup must be (256, 1, 1)" in info.render()
    kernel.args = []
    assert "gemm: no arguments" in info.render()
    assert repr(kernel) == "KernelInfo('gemm', vgpr=104, agpr=0, sgpr=33)"
