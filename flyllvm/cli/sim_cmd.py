"""``flyllvm sim``: runs a kernel of an ``.ll`` file on NumPy arrays and reports what is wrong with it."""

from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path

from ..errors import FlyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from ..sim.report import SimReport

_SCALAR_HELP = "i32:7, f32:0.5"
_TYPES = "i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    parser.add_argument("file", metavar="FILE.ll", help="textual LLVM IR")
    parser.add_argument("--arch", help="target id (default: that of the file, else gfx942)")
    parser.add_argument("--kernel", help="name of the kernel; needed where the file has several")
    parser.add_argument("--grid", default="1", metavar="X[,Y,Z]", help="workgroups per axis")
    parser.add_argument("--block", default="64", metavar="X[,Y,Z]", help="work items per axis")
    parser.add_argument("--wave", type=int, help="lanes in a wave, where the chip has both modes")
    parser.add_argument(
        "--arg", action="append", default=[], metavar="ARG", dest="args",
        help=f"one per parameter: FILE.npy, TYPE:FILE.npy (converted), TYPE:NUMBER ({_SCALAR_HELP}), TYPE[SHAPE] "
             f"(a buffer of zeros), or null; TYPE is one of {_TYPES}",
    )  # fmt: skip
    parser.add_argument("--lds-bytes", type=int, default=0, metavar="N", help="dynamic LDS in bytes")
    parser.add_argument("--out", metavar="DIR", help="write every array argument after the run into DIR")
    parser.add_argument(
        "--expect", action="append", default=[], metavar="[N=]FILE.npy",
        help="compare argument N (default: the one array that the kernel wrote) with FILE.npy",
    )  # fmt: skip
    parser.add_argument("--rtol", type=float, default=0.0, help="relative tolerance of --expect (default 0: equal)")
    parser.add_argument("--atol", type=float, default=0.0, help="absolute tolerance of --expect (default 0)")
    parser.add_argument(
        "--profile", action="store_true", help="table per line: traffic, coalescing, bank conflicts; occupancy"
    )
    parser.add_argument("--html", metavar="FILE", help="write the report as an HTML page; implies --profile")
    parser.add_argument("--checks", default="default", choices=("none", "default", "all"), help="which checkers run")
    parser.add_argument("--check-all", action="store_const", const="all", dest="checks", help="short for --checks all")
    parser.add_argument("--fail-on-warnings", action="store_true", help="status 1 where the report has a warning")
    parser.add_argument(
        "--engine", default="auto", choices=("auto", "numpy", "jit"),
        help="jit runs most kernels as host code, with --checks none only (default: the one that pays)",
    )  # fmt: skip
    parser.add_argument(
        "--max-steps", type=int, default=2_000_000, metavar="N",
        help="basic blocks that some workgroups run together before they count as endless (default 2000000)",
    )  # fmt: skip
    parser.add_argument("--check", action="store_true", help="only list what the simulator does not know, run nothing")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(ns: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        0 without a fault, 1 where a comparison failed, or a checker warned and --fail-on-warnings is given.  A fault in
        the kernel is raised as ``SimError``.
    """
    from ..sim import UnsupportedError

    text = _text(ns.file)
    if ns.check:
        return _check(ns, text)
    try:
        return _simulate(ns, text)
    except UnsupportedError as error:  # the input is not wrong, but it is none for us: status 2, not 1
        raise FlyError(error.what, error.where, error.fix) from None


def _text(file: str) -> str:
    from ..codeobject.files import read_text

    try:
        return read_text(file, "a file of textual LLVM IR")
    except (OSError, UnicodeDecodeError) as error:
        raise FlyError(f"cannot read {file}: {error}", fix="pass a file of textual LLVM IR") from None


def _check(ns: argparse.Namespace, text: str) -> int:
    from ..sim import check_module, parse_module

    module = parse_module(text, ns.file)
    if ns.kernel and ns.kernel not in module.kernels():
        raise FlyError(f"{ns.file} has no kernel @{ns.kernel}", fix=f"it has: {', '.join(module.kernels()) or 'none'}")
    found = check_module(module)
    if ns.kernel:
        found = {ns.kernel: found[ns.kernel]}
    if ns.json:
        rows = {name: [{"name": u.name, "line": u.line, "reason": u.reason} for u in us] for name, us in found.items()}
        print(json.dumps({"kernels": rows}, indent=2))
    else:
        if not found:
            print(f"{ns.file} has no kernel")
        for name, us in found.items():
            print(f"@{name}: " + ("can be simulated" if not us else f"{len(us)} unknown"))
            for unknown in us:
                print(f"  {ns.file}:{unknown}")
    return 1 if any(found.values()) else 0


def _dims(name: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise FlyError(f"--{name} {text!r} is no list of ints", fix=f"write --{name} X, X,Y or X,Y,Z") from None


def _check_numbers(ns: argparse.Namespace) -> None:
    for option, number, least in (("lds-bytes", ns.lds_bytes, 0), ("max-steps", ns.max_steps, 1)):
        if number < least:
            raise FlyError(f"--{option} {number}", fix=f"give a number from {least} on")
    for option, tolerance in (("rtol", ns.rtol), ("atol", ns.atol)):
        if not 0 <= tolerance < float("inf"):
            raise FlyError(f"--{option} {tolerance}", fix="give a number that is not negative")


def _run(ns: argparse.Namespace, text: str, values: list[Any], **options: Any) -> SimReport:
    """One run of the kernel at the size and on the chip that the command line names."""
    from ..sim import simulate

    return simulate(
        text, ns.kernel, grid=_dims("grid", ns.grid), block=_dims("block", ns.block), args=values, target=ns.arch,
        dynamic_lds_bytes=ns.lds_bytes, wave_size=ns.wave, source_name=ns.file, max_steps=ns.max_steps, **options,
    )  # fmt: skip


def _simulate(ns: argparse.Namespace, text: str) -> int:
    from ..atoms.cost import matrix_cycles
    from .sim_args import Argument, compare, read_argument

    _check_numbers(ns)
    arguments: list[Argument] = [read_argument(text, i) for i, text in enumerate(ns.args)]
    expected = [_split_expect(item) for item in ns.expect]
    before = [a.snapshot() for a in arguments]
    profiled = ns.profile or bool(ns.html)
    report = _run(
        ns, text, [a.value for a in arguments], checks=ns.checks, profile=profiled, engine=ns.engine,
        progress=_progress(), printf_to=sys.stderr if ns.json else None,
    )  # fmt: skip
    warned = bool(report.warnings)
    report.matrix_cycles = matrix_cycles(report.instructions, report.target.partition(":")[0])
    if profiled:
        _add_resources(report, text)
    results = [
        compare(index, file, arguments, before, ns.rtol, ns.atol) for index, file in expected
    ]  # fmt: skip
    failed = [r for r in results if not r["ok"]]
    if failed:
        values = [a.value if old is None else old for a, old in zip(arguments, before, strict=True)]
        _stored_by(ns, text, report, values, failed)
    if ns.html:
        from ..codeobject.files import write_file

        write_file(ns.html, report.to_html().encode("utf-8"))
    outputs = _write(ns.out, arguments) if ns.out else []
    if ns.json:
        data: dict[str, Any] = {"ok": all(r["ok"] for r in results), "report": report.to_dict()}
        print(json.dumps({**data, "comparisons": results, "outputs": outputs}, indent=2))
    else:
        print(report.render())
        for r in results:
            verdict = "agrees" if r["ok"] else f"differs in {r['different']} of {r['count']} elements"
            print(f"argument {r['argument']} {verdict}, largest error {r['max_abs_error']:.6g}, {r['file']}")
        for path in outputs:
            print(f"wrote {path}")
    for r in () if ns.json else failed:  # the JSON has them
        found = f"it has {r['got']}, the file {r['want']}"
        print(
            f"error: argument {r['argument']} differs from {r['file']}, first at {r['first']}: {found}",
            file=sys.stderr,
        )
        print(f"  {r['stored_by']}", file=sys.stderr)
    return 1 if failed or (warned and ns.fail_on_warnings) else 0


def _stored_by(
    ns: argparse.Namespace, text: str, report: SimReport, values: list[Any], results: list[dict[str, Any]]
) -> None:
    """Says of each comparison that failed which instruction stored its first wrong element.

    Where the run did not keep that, the kernel runs once more with all checks, which may find the cause itself, or warn
    of it: the warnings go into the report.
    """
    from ..errors import SimError

    said = ""
    if report.writers is None:
        try:
            checked = _run(ns, text, values, checks="all", printf_to=StringIO())
            report.warnings += [w for w in checked.warnings if w not in report.warnings]
            report = checked
        except SimError as error:
            said = f"under --check-all: {error}"
    for r in results:
        array = values[r["argument"]]
        byte = sum(i * s for i, s in zip(r["first"], array.strides, strict=True))
        writer = None if said else report.writer_of(r["argument"], byte)
        r["stored_by"] = said or (f"stored by {writer}" if writer else "the kernel did not store it")


def _add_resources(report: SimReport, text: str) -> None:
    """Compiles the module for the registers and the LDS that its kernel takes; a warning where LLVM cannot."""
    from ..codegen.options import Options
    from ..compiler.pipeline import Timings, link_stage, object_stage
    from ..target import Target

    target = Target.parse(report.target, report.wave_size)
    # Other compilers' LLVM may spell the triple in ways that this one does not know.
    text = "\n".join(line for line in text.split("\n") if not line.startswith(("target triple", "target datalayout")))
    try:
        code = link_stage(object_stage(text, target, Options(), Timings(), check=True).object)
    except FlyError as error:
        report.warnings.append(f"no occupancy: LLVM cannot compile this module: {error.what.splitlines()[0]}")
        return
    if report.kernel not in code.kernels:
        report.warnings.append(f"no occupancy: LLVM leaves out @{report.kernel}, which nobody outside can call")
        return
    report.add_resources(code.kernels[report.kernel], target)


def _split_expect(text: str) -> tuple[int | None, str]:
    head, sep, tail = text.partition("=")
    return (int(head), tail) if sep and head.isdigit() else (None, text)


def _write(folder: str, arguments: list[Any]) -> list[str]:
    import numpy as np

    directory = Path(folder)
    directory.mkdir(parents=True, exist_ok=True)
    names: set[str] = set()
    written = []
    for index, argument in enumerate(arguments):
        result = argument.result()
        if result is None:
            continue
        name = argument.file_name or f"arg{index}.npy"
        if name in names:
            name = f"arg{index}_{name}"
        names.add(name)
        np.save(directory / name, result)
        written.append(str(directory / name))
    return written


def _progress() -> Any:
    """A progress line on a terminal, for runs that last; ``None`` elsewhere."""
    if not sys.stderr.isatty():
        return None
    import time

    start, shown = time.monotonic(), [False]

    def show(done: int, total: int) -> None:
        elapsed = time.monotonic() - start
        if elapsed < 1.0 and not shown[0]:
            return
        shown[0] = done < total
        bar = "#" * (30 * done // total)
        end = "\r" if done < total else "\n"
        print(f"[{bar:<30}] {done}/{total} workgroups, {elapsed:.0f} s", end=end, file=sys.stderr, flush=True)

    return show
