"""Compiled kernels in a folder, to be loaded where there is neither their source nor LLVM.

A folder holds one ``.hsaco`` per kernel and target, the LLVM IR for the simulator beside it where that is wanted, and
``manifest.json``, which is written last: a folder without one is not finished.
"""

from __future__ import annotations

import os

from ..errors import CodegenError, FlyError, LinkError, TargetError
from ..target import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .artifact import Artifact

MANIFEST = "manifest.json"
_FORMAT = 1
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def save_artifacts(
    folder: str | os.PathLike[str], artifacts: Mapping[str, Artifact | list[Artifact]], *, llvm_ir: bool = True
) -> str:
    """Writes compiled kernels and their manifest; kernels of an older manifest in the folder stay.

    Args:
        folder: Where to; made where it is not there.
        artifacts: Name → artifact, or artifacts of one kernel for several targets.
        llvm_ir: Whether the LLVM IR is kept too, so that the simulator can run what was loaded.

    Returns:
        Path of the manifest.

    Raises:
        CodegenError: A name cannot be a file name, two kernels have one name and target, or nothing was compiled.
        LinkError: A file cannot be written.
    """
    import json

    from ..codeobject.files import write_file

    root = os.fspath(folder)
    os.makedirs(root, exist_ok=True)
    rows = {_key(row): row for row in _rows(root, missing_ok=True)}
    written: set[tuple[str, str, int]] = set()
    for name, given in artifacts.items():
        if not name or not set(name) <= _SAFE or name.startswith("."):
            raise CodegenError(f"an artifact named {name!r}", fix="use letters, digits, '_', '-' and '.'")
        for artifact in given if isinstance(given, list) else [given]:
            row = _write(root, name, artifact, llvm_ir)
            if _key(row) in written:
                raise CodegenError(f"two artifacts {name} for {row['target']}", fix="give them two names")
            written.add(_key(row))
            rows[_key(row)] = row
    path = os.path.join(root, MANIFEST)
    body = {"format": _FORMAT, "artifacts": [rows[k] for k in sorted(rows)]}
    write_file(path, (json.dumps(body, indent=1) + "\n").encode())
    return path


def _key(row: Mapping[str, Any]) -> tuple[str, str, int]:
    return row["name"], row["target"], row["wave_size"]


def _write(root: str, name: str, artifact: Artifact, llvm_ir: bool) -> dict[str, Any]:
    from .. import __version__
    from ..codeobject.files import write_file
    from .cache.entry import checksum

    image, target = artifact.code_object.image, artifact.target
    kernel = artifact.code_object.kernels[artifact.name]
    stem = f"{name}.{str(target).replace(':', '_').replace('+', '-on').replace('--', '-')}"
    if len(target.chip.waves) > 1:
        stem += f".wave{target.wave_size}"
    write_file(os.path.join(root, f"{stem}.hsaco"), image)
    options = {n: getattr(artifact.options, n) for n in artifact.options.__slots__}
    row: dict[str, Any] = {
        "name": name,
        "kernel": artifact.name,
        "target": str(target),
        "wave_size": target.wave_size,
        "file": f"{stem}.hsaco",
        "checksum": checksum(image).decode(),
        "specs": [str(spec) for spec in artifact.specs],
        "parameters": artifact.parameters,
        "known_block_size": artifact.known_block_size,
        "dynamic_lds_bytes": artifact.dynamic_lds_bytes,
        "printf_formats": artifact.printf_formats,
        "options": options,
        "resources": {
            n: getattr(kernel, n)
            for n in ("vgpr_count", "agpr_count", "sgpr_count", "lds_bytes", "scratch_bytes", "vgpr_spill_count")
        },
        "flyllvm": __version__,
    }
    if llvm_ir:
        text = artifact.llvm_ir.encode()
        write_file(os.path.join(root, f"{stem}.ll"), text)
        row |= {"llvm_ir": f"{stem}.ll", "llvm_ir_checksum": checksum(text).decode()}
    return row


def _rows(root: str, *, missing_ok: bool = False) -> list[dict[str, Any]]:
    """The rows of a manifest.

    Raises:
        LinkError: There is none, or it is not one of ours.
    """
    from ..codeobject.files import read_text
    from .cache.json_text import loads

    path = os.path.join(root, MANIFEST)
    try:
        body = loads(read_text(path, "a manifest").lstrip())
        rows = body["artifacts"]
        if body["format"] != _FORMAT:
            raise LinkError(f"format {body['format']} of the manifest", path, f"this flyllvm reads format {_FORMAT}")
        return list(rows)
    except FileNotFoundError:
        if missing_ok:
            return []
        raise LinkError("no manifest", path, "give a folder that flyllvm compile --config has written") from None
    except (ValueError, KeyError, TypeError):
        raise LinkError("not a manifest of compiled kernels", path, "compile the folder again") from None


def list_artifacts(folder: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """(name, target) of every kernel in a folder.

    Raises:
        LinkError: The folder has no manifest.
    """
    return [(row["name"], row["target"]) for row in _rows(os.fspath(folder))]


def load_artifact(
    folder: str | os.PathLike[str], name: str, arch: str | Target | None = None, wave_size: int | None = None
) -> Artifact:
    """A kernel from a folder, ready to launch; needs neither its source nor llvmlite.

    Args:
        folder: Folder with a manifest.
        name: The kernel's name in it.
        arch: Target, where the folder has the kernel for several.
        wave_size: Lanes in a wave, where the folder has the kernel for both.

    Raises:
        LinkError: The folder or a file in it is missing, or not what was written.
        TargetError: There is no such kernel for the target, or more than one.
    """
    root = os.fspath(folder)
    rows = _rows(root)
    named = [row for row in rows if row["name"] == name]
    if not named:
        known = ", ".join(sorted({row["name"] for row in rows})) or "none"
        raise LinkError(f"no kernel {name!r}", root, f"it holds: {known}")
    fitting = [row for row in named if _fits(row, arch, wave_size)]
    if len(fitting) != 1:
        have = ", ".join(f"{row['target']} (wave {row['wave_size']})" for row in named)
        what = "no" if not fitting else "more than one"
        raise TargetError(f"{what} {name} for {arch or 'any target'}", root, f"choose arch and wave_size of: {have}")
    return _load(root, fitting[0])


def _fits(row: Mapping[str, Any], arch: str | Target | None, wave_size: int | None) -> bool:
    if wave_size is not None and row["wave_size"] != wave_size:
        return False
    if arch is None:
        return True
    if isinstance(arch, Target):
        return (str(arch), arch.wave_size) == (row["target"], row["wave_size"])
    return bool(str(Target.parse(arch)) == row["target"])


def _load(root: str, row: Mapping[str, Any]) -> Artifact:
    from ..codegen.options import Options
    from ..codeobject import CodeObject
    from ..expr.specs import parse_spec
    from .artifact import Artifact

    def no_source() -> Any:
        raise CodegenError(
            f"{row['name']} was loaded from {root}, without its source", fix="compile the kernel to see its fly IR"
        )

    image = _read(os.path.join(root, row["file"]), row["checksum"])
    try:
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row["options"].items()}
        options = Options(**given)
        artifact = Artifact(
            source=no_source,
            name=row["kernel"],
            target=Target.parse(row["target"], row["wave_size"]),
            options=options,
            specs=[parse_spec(text) for text in row["specs"]],
            parameters=row["parameters"],
        )
        block = row["known_block_size"]
        artifact.known_block_size = None if block is None else (block[0], block[1], block[2])
        artifact.dynamic_lds_bytes = row["dynamic_lds_bytes"]
        artifact._printf_formats = row.get("printf_formats")
        if "llvm_ir" in row:
            text = _read(os.path.join(root, row["llvm_ir"]), row["llvm_ir_checksum"])
            artifact.llvm_ir = text.decode()
    except (KeyError, TypeError) as e:
        raise LinkError(f"the manifest's entry of {row['name']}: {e}", root, "compile the folder again") from None
    # Written from a code object, under a checksum: it is read when somebody asks what it holds.
    artifact._code_object = CodeObject(image)
    return artifact


def _read(path: str, sum_of_contents: str) -> bytes:
    from ..codeobject.files import read_file
    from .cache.entry import checksum

    data = read_file(path)
    if checksum(data).decode() != sum_of_contents:
        raise LinkError("the file is not what the manifest says", path, "compile the folder again")
    return data


def compile_config(
    config: Mapping[str, Any], load: Any, folder: str | os.PathLike[str], where: str, guard: Any = None
) -> list[dict[str, Any]]:
    """Compiles what a configuration lists, and saves it.

    Args:
        config: ``{"kernels": [{"file", "name", "args", "arch", "constants", "each", "options"}], "defaults": {...}}``.
        load: Gives the kernel of ``FILE.py:NAME``.
        folder: Where to.
        where: The configuration's file, for errors.
        guard: Makes a context around the compilation of ``FILE.py:NAME``; it may turn the author's errors into ours.

    Returns:
        One row per compiled kernel: name, target, resources, CPU time of each stage.

    Raises:
        CodegenError: The configuration is malformed, or kernels do not compile; nothing is written then.
    """
    from contextlib import nullcontext

    from .aot_config import jobs_of

    made: dict[str, list[Artifact]] = {}
    rows, failed = [], []
    for job in jobs_of(config, where):
        try:
            kernel = load(job.file)
            with nullcontext() if guard is None else guard(job.file):
                compiled = job.compile(kernel)
            for name, artifact in compiled:
                made.setdefault(name, []).append(artifact)
                rows.append(_report(name, artifact))
        except FlyError as e:
            failed.append(f"{job.name} for {job.arch}: {e}")
    if failed:
        raise CodegenError(
            f"{len(failed)} of the kernels do not compile; nothing is written:\n" + "\n".join(failed),
            where,
            "correct them, or take them out of the list",
        )
    save_artifacts(folder, dict(made), llvm_ir=bool(config.get("llvm_ir", True)))
    return rows


def _report(name: str, artifact: Artifact) -> dict[str, Any]:
    kernel = artifact.code_object.kernels[artifact.name]
    return {
        "name": name,
        "kernel": artifact.name,
        "target": str(artifact.target),
        "vgpr_count": kernel.vgpr_count,
        "agpr_count": kernel.agpr_count,
        "sgpr_count": kernel.sgpr_count,
        "lds_bytes": kernel.lds_bytes,
        "scratch_bytes": kernel.scratch_bytes,
        "spills": kernel.vgpr_spill_count + kernel.sgpr_spill_count,
        "from_cache": artifact.from_cache is not None,
        "timings_ms": artifact.timings.stages,
    }
