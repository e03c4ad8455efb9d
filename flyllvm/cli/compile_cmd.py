"""``flyllvm compile``: a kernel, fly IR or LLVM IR to a code object, or the text of a stage."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..errors import CodegenError, FlyError, TargetError
from ..target import Target

if TYPE_CHECKING:
    import argparse

    from ..codegen.options import Options
    from ..compiler.artifact import Artifact

EMIT = ("fly", "atoms", "ssa", "llvm", "opt", "asm", "obj", "hsaco")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="FILE.py[:kernel], FILE.fly or FILE.ll")
    parser.add_argument(
        "--config",
        metavar="FILE.json",
        help='compile all that the file lists ({"kernels": [{"file": "a.py:k", "args": [...], "arch": [...], '
        '"constants": {...}, "each": {...}}]}) into the folder OUT, with a manifest',
    )
    parser.add_argument("--arch", help="target, e.g. gfx942 or gfx942:sramecc+:xnack- (default: FLYLLVM_ARCH)")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="SPEC",
        help="an argument: 'f16[?,128]:(?,1){div=8,align=16}', i32",
    )
    parser.add_argument("--const", action="append", default=[], metavar="NAME=VALUE", help="a compile-time value")
    parser.add_argument("-o", "--output", metavar="OUT", help="where the result goes; - is standard output")
    parser.add_argument("--emit", choices=EMIT, default="hsaco", help="the stage to produce (default: hsaco)")
    parser.add_argument("--time", action="store_true", help="print the CPU time of every stage")
    parser.add_argument("--opt-level", type=int, default=1, choices=(0, 1, 2, 3), help="LLVM code generation level")
    parser.add_argument("--passes", default="auto", choices=("auto", "none", "O1", "O2", "O3"), help="LLVM IR pipeline")
    parser.add_argument("--cov", type=int, default=5, choices=(4, 5, 6), help="code object version")
    parser.add_argument("--no-debug", action="store_true", help="leave line tables out")
    parser.add_argument("--no-ssa", action="store_true", help="keep register memory in memory (no SSA form)")
    parser.add_argument("--no-cache", action="store_true", help="do without the disk cache")
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="longest time for LLVM (default: 600)")
    parser.add_argument("--wave-size", type=int, help="lanes in a wave, where the chip has both modes")
    parser.add_argument("--json", action="store_true", help="print JSON, and errors as a JSON object on stderr")


def run(ns: argparse.Namespace) -> int:
    """Compiles and writes or prints the result.

    Raises:
        FlyError: Bad input; nothing is written.
    """
    if (ns.file is None) == (ns.config is None):
        raise FlyError("flyllvm compile takes a FILE or --config", fix="give one of them")
    if ns.config is not None:
        from .compile_config import run_config

        return run_config(ns)
    target = Target.parse(ns.arch or _default_arch(), ns.wave_size)
    if ns.file.endswith(".ll"):
        data, report = _llvm_file(ns, target)
    else:
        data, report = _kernel(ns, target)
    if ns.output == "-":
        sys.stdout.buffer.write(data if isinstance(data, bytes) else data.encode())
        return 0
    _write(ns, data)
    _print(ns, report, data)
    return 0


def _seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise ValueError
    return value


def _limits(ns: argparse.Namespace) -> dict[str, Any]:
    return {} if ns.timeout is None else {"timeout": ns.timeout}


def _settings(ns: argparse.Namespace) -> dict[str, Any]:
    return {
        "opt_level": ns.opt_level,
        "passes": ns.passes,
        "cov": ns.cov * 100,
        "debug": not ns.no_debug,
    }


def _default_arch() -> str:
    from ..compiler.compile import default_arch

    try:
        return default_arch()
    except TargetError as error:
        error.fix = "give --arch gfx942, or set FLYLLVM_ARCH"
        raise


def _check_count(kernel: Any, given: list[str], constants: dict[str, Any]) -> None:
    """Says which ``--arg`` is missing, in the words of the command line."""
    from ..compiler.binding_call import as_argument
    from ..compiler.kernel import KernelFunction

    params = kernel.call_parameters() if isinstance(kernel, KernelFunction) else kernel.params
    free = [i for i, n in enumerate(params.names) if n not in constants]
    for i, text in zip(free, given):
        as_argument(params, i, text)  # a malformed one is the first thing to correct
    rest = [i for i in free[len(given) :] if params.kinds[i] != "stream"]
    missing = [params.names[i] for i in rest if params.names[i] not in params.defaults]
    if missing:
        names = ", ".join(params.names[i] for i in free)
        raise FlyError(
            f"{kernel.__name__} has no value for {', '.join(missing)}: {len(given)} --arg for its parameters {names}",
            fix="give one --arg for each, in this order (--arg 'f16[?,128]', --arg i32), or --const NAME=VALUE",
        )


def _kernel(ns: argparse.Namespace, target: Target) -> tuple[bytes | str, dict[str, Any]]:
    from ..compiler.compile import build, compile

    stop = {"obj": "object", "hsaco": None}.get(ns.emit, "llvm")
    if ns.file.endswith(".fly"):
        from .. import atoms as _atoms  # noqa: F401  # registers the operations that the text may name
        from ..ir.parser import parse_module

        if ns.arg or ns.const:
            raise FlyError("--arg and --const with a .fly file", fix="its kernels name their arguments themselves")
        text = _read(ns.file)
        settings, limits = _settings(ns), _limits(ns)
        artifact = build(lambda: parse_module(text, ns.file), target, settings, stop, ssa=not ns.no_ssa, limits=limits)
    else:
        from .load_kernel import authors_errors, constants, load_python

        kernel = load_python(ns.file)
        fixed = constants(ns.const)
        _check_count(kernel, ns.arg, fixed)
        with authors_errors(ns.file):
            artifact = compile(
                kernel,
                *ns.arg,
                arch=target,
                constants=fixed,
                stop_after=stop,
                ssa=not ns.no_ssa,
                cache=not ns.no_cache,
                limits=_limits(ns) or None,
                **_settings(ns),
            )
    return _product(ns.emit, artifact), {"kernel": artifact.name, "timings": artifact.timings, "artifact": artifact}


def _product(emit: str, artifact: Artifact) -> bytes | str:
    if emit in ("fly", "atoms", "ssa"):
        return artifact.stage_text(emit)
    if emit == "llvm":
        return artifact.llvm_ir
    if emit == "asm":
        return artifact.assembly
    if emit == "opt":
        return artifact.optimised_ir
    if emit == "obj":
        return artifact.object_bytes or b""
    return artifact.code_object.image


def _llvm_file(ns: argparse.Namespace, target: Target) -> tuple[bytes | str, dict[str, Any]]:
    if ns.emit in ("fly", "atoms", "ssa"):
        raise CodegenError(
            f"--emit {ns.emit} of LLVM IR", fix="a .ll file starts at stage llvm: use llvm, opt, asm, obj or hsaco"
        )
    if ns.arg or ns.const:
        raise FlyError("--arg and --const with a .ll file", fix="LLVM IR names its arguments itself")
    try:
        return _from_llvm(_read(ns.file), ns, target)
    except CodegenError as error:
        # LLVM, which gets the text alone, has no other name for it.
        error.what = error.what.replace("<string>:", f"{ns.file}:")
        raise


def _from_llvm(text: str, ns: argparse.Namespace, target: Target) -> tuple[bytes | str, dict[str, Any]]:
    from ..codegen.options import Options
    from ..compiler.pipeline import Timings, code_of_text, object_stage

    options, clock = Options(**_settings(ns)), Timings()
    report: dict[str, Any] = {"kernel": None, "timings": clock}
    if ns.emit == "llvm":
        return text, report
    if ns.emit in ("asm", "opt"):
        return _text_of(text, target, options, ns.emit, **_limits(ns)), report
    if ns.emit == "obj":
        result = object_stage(text, target, options, clock, check=True, **_limits(ns))
        _warn(result.messages)
        return bytes(result.object), report
    report["code"], messages = code_of_text(text, target, options, clock, **_limits(ns))
    _warn(messages)
    return report["code"].image, report


def _warn(messages: str) -> None:
    if messages:
        print(f"warning: LLVM: {messages}", file=sys.stderr)


def _text_of(text: str, target: Target, options: Options, emit: str, **limits: Any) -> str:
    from ..codegen.client import compile_llvm

    result = compile_llvm(
        text, target, opt_level=options.opt_level, passes=options.passes, cov=options.cov, want=(emit,), **limits
    )
    return str(result.assembly if emit == "asm" else result.optimised_ir)


def _read(path: str) -> str:
    from ..codeobject.files import read_text

    try:
        return read_text(path, "fly IR or LLVM IR as text")
    except UnicodeError as error:
        raise FlyError(f"{path} is not UTF-8 text: {error}", fix="pass fly IR or LLVM IR as text") from None


def _write(ns: argparse.Namespace, data: bytes | str) -> None:
    if ns.output is None:
        return
    from ..codeobject.files import write_file

    write_file(ns.output, data if isinstance(data, bytes) else data.encode())


def _print(ns: argparse.Namespace, report: dict[str, Any], data: bytes | str) -> None:
    artifact = report.get("artifact")
    code = report.get("code") or (artifact.code_object if artifact is not None and ns.emit == "hsaco" else None)
    clock = report["timings"]
    if ns.json:
        _print_json(ns, report, data, code)
        return
    if isinstance(data, str) and ns.output is None:
        sys.stdout.write(data if data.endswith("\n") else data + "\n")
    elif code is not None:
        for k in code.kernels.values():
            print(
                f"{ns.output or '(not written)'}: {k.name} for {code.target}: "
                f"{k.vgpr_count} VGPRs, {k.agpr_count} AGPRs, {k.sgpr_count} SGPRs, "
                f"{k.lds_bytes} bytes LDS, {k.scratch_bytes} bytes scratch, "
                f"{k.vgpr_spill_count + k.sgpr_spill_count} spills"
            )
    elif ns.output is not None:
        print(f"{ns.output}: {len(data)} {'bytes' if isinstance(data, bytes) else 'characters'}")
    else:
        print(f"{len(data)} bytes, not written (give -o FILE)")
    if ns.time:
        print(clock.render())


def _print_json(ns: argparse.Namespace, report: dict[str, Any], data: bytes | str, code: Any) -> None:
    import json

    body: dict[str, Any] = {"emit": ns.emit, "output": ns.output, "kernel": report["kernel"]}
    if isinstance(data, str) and ns.output is None:
        body["text"] = data
    if code is not None:
        from ..codeobject import inspect

        body["code_object"] = json.loads(inspect(code.image).to_json())
    if ns.time:
        body["timings_ms"] = report["timings"].stages
        body["notes"] = report["timings"].notes
    print(json.dumps(body))
