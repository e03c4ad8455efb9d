"""The command ``flyllvm``: picks the sub-command, and turns errors into a message and an exit status.

Exit status: 0 done; 1 a check failed (also: the simulator found a fault in the kernel); 2 bad input; 3 a bug in
flyllvm, with its traceback; 130 interrupted; 141 the reader of a pipe went away.  Errors go to stderr: as text, or
as one JSON object ``{"error": {"type", "what", "where", "fix"}}`` where ``--json`` is given.

Only the sub-command that runs is imported, and only its parser is built.
"""

from __future__ import annotations

import sys

from ..errors import FlyError, SimError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    Run = Callable[[argparse.Namespace], int]

COMMANDS = {
    "compile": "compile a kernel, fly IR or LLVM IR to a code object, or print a stage",
    "sim": "run LLVM IR on NumPy arrays in the simulator",
    "inspect": "print kernels, registers and arguments of a code object or object file",
    "link": "link an object file into a code object",
    "layout": "evaluate expressions of the layout algebra",
    "atoms": "list the atoms, their rows, layouts and cost",
    "smoke": "run a graded set of kernels on the GPU and compare each with the simulator",
    "cache": "look at the cache of compiled kernels, and make it smaller",
    "doctor": "check what this installation can do",
}

_DASHES = "; write -- before the first argument that is no option but begins with '-'"
CHECK_FAILED, BAD_INPUT, BUG, INTERRUPTED, PIPE_CLOSED = 1, 2, 3, 130, 141


class UsageError(FlyError):
    """The command line itself is wrong."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit status."""
    args = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None or sys.stderr is None:
        _open_closed()
    try:
        status = _dispatch(args)
        sys.stdout.flush()
        return status
    except FlyError as error:
        _report(error, "--json" in args)
        return CHECK_FAILED if isinstance(error, SimError) else BAD_INPUT
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return PIPE_CLOSED
    except OSError as error:
        _report(_file_error(error), "--json" in args)
        return BAD_INPUT
    except MemoryError as error:
        message = f"not enough memory: {error}" if str(error) else "not enough memory"
        _report(FlyError(message, fix="use smaller input, or more memory"), "--json" in args)
        return BAD_INPUT
    except UnicodeError as error:
        _report(FlyError(f"an argument or input is not UTF-8 text: {error}", fix="save it as UTF-8"), "--json" in args)
        return BAD_INPUT
    except Exception:
        import traceback

        traceback.print_exc()
        print("error: this is a bug in flyllvm; please report the lines above", file=sys.stderr)
        return BUG


def _dispatch(args: list[str]) -> int:
    if not args:
        print(_help(), file=sys.stderr)
        return BAD_INPUT
    name = args[0]
    if name in ("-h", "--help"):
        print(_help())
        return 0
    if name == "--version":
        from .. import __version__

        print(f"flyllvm {__version__}")
        return 0
    if name not in COMMANDS:
        raise _unknown_command(name)
    parser = _parser(name, args[1:])
    run = _configure(name, parser)
    try:
        namespace = parser.parse_intermixed_args(args[1:])
    except SystemExit as stop:  # --help has been printed
        return int(stop.code or 0)
    return run(namespace)


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name:{width}}  {summary}" for name, summary in COMMANDS.items())
    return (
        "usage: flyllvm COMMAND [ARGUMENT ...] [--json]\n\n"
        f"{lines}\n\n"
        "flyllvm COMMAND --help explains one command; flyllvm --version prints the version.\n"
        "Exit status: 0 done, 1 a check failed, 2 bad input."
    )


def _unknown_command(name: str) -> UsageError:
    import difflib

    close = difflib.get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return UsageError(f"unknown command {name!r}", fix=f"{hint}the commands are: {', '.join(COMMANDS)}")


def _parser(name: str, args: Sequence[str]) -> argparse.ArgumentParser:
    import argparse

    dashed = any(arg.startswith("-") and arg[1:2] not in ("", "-") and not arg[1].isalpha() for arg in args)

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> object:  # type: ignore[override]
            raise UsageError(f"flyllvm {name}: {message}", fix=f"see flyllvm {name} --help{_DASHES * dashed}")

    return Parser(
        prog=f"flyllvm {name}", description=f"{COMMANDS[name][0].upper()}{COMMANDS[name][1:]}.", allow_abbrev=False
    )


def _configure(name: str, parser: argparse.ArgumentParser) -> Run:
    """Declares the arguments of one sub-command and returns what runs it."""
    if name in _DIRECT:
        return _DIRECT[name](parser)
    import importlib

    module = importlib.import_module(f"flyllvm.cli.{name}_cmd")
    module.add_arguments(parser)
    run: Run = module.run
    return run


def _layout(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("expressions", nargs="+", metavar="EXPR", help="an expression, or - for one a line from stdin")
    parser.add_argument("--svg", metavar="FILE", help="draw the result into FILE")
    _add_json(parser)

    def run(ns: argparse.Namespace) -> int:
        from . import layout_cmd

        return layout_cmd.run(ns.expressions, json=ns.json, svg=ns.svg)

    return run


def _inspect(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("path", metavar="FILE", help="a code object (.hsaco) or object file (.o)")
    _add_json(parser)

    def run(ns: argparse.Namespace) -> int:
        from . import inspect_cmd

        return inspect_cmd.run(ns.path, json=ns.json)

    return run


def _link(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("path", metavar="FILE.o", help="a relocatable AMDGPU object file")
    parser.add_argument("-o", "--output", metavar="FILE.hsaco", required=True, help="where the code object goes")
    _add_json(parser)

    def run(ns: argparse.Namespace) -> int:
        from . import link_cmd

        return link_cmd.run(ns.path, ns.output, json=ns.json)

    return run


# Sub-commands with so few arguments that they are declared here.
_DIRECT = {"layout": _layout, "inspect": _inspect, "link": _link}


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, and errors as a JSON object on stderr")


def _report(error: FlyError, json: bool) -> None:
    if json:
        from json import dumps

        where = None if error.where is None else str(error.where)
        body = {"type": type(error).__name__, "what": error.what, "where": where, "fix": error.fix}
        print(dumps({"error": body}), file=sys.stderr)
    else:
        print(f"error: {error}", file=sys.stderr)


def _file_error(error: OSError) -> FlyError:
    reason = error.strerror or str(error)
    if error.filename is None:
        return FlyError(f"the operating system refused: {reason}", fix="check free space, and where the output goes")
    return FlyError(f"cannot use {str(error.filename)!r}: {reason}", fix="check the path and its permissions")


def _open_closed() -> None:
    """Gives streams that the caller closed a place to write to, so that no file of ours gets their numbers."""
    import os

    # Python closes them at exit.
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _discard_stdout() -> None:
    """Points stdout at nothing, or Python would fail again when it flushes at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
