"""Loading the kernel a command names: ``FILE.py:kernel``, ``FILE.fly`` or ``FILE.ll``."""

from __future__ import annotations

import ast
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import FlyError, TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..compiler.jit_function import JitFunction
    from ..compiler.kernel import KernelFunction


def load_python(spec: str) -> KernelFunction | JitFunction:
    """The kernel of ``FILE.py``, or the kernel or host function of ``FILE.py:name``.

    Raises:
        TraceError: The file has no such function, or several kernels and none is named.
        FlyError: The file cannot be run.
    """
    from ..compiler.jit_function import JitFunction
    from ..compiler.kernel import KernelFunction

    path, _, name = spec.partition(":")
    if path.endswith((".ll", ".fly")):
        raise FlyError(
            f"{spec}: a kernel is named in a Python file only", fix=f"give {path}: all its kernels are compiled"
        )
    namespace = _run(path)
    found = {k: v for k, v in namespace.items() if isinstance(v, KernelFunction)}
    if name:
        named = found | {k: v for k, v in namespace.items() if isinstance(v, JitFunction)}
        if name not in named:
            raise TraceError(f"{path} has no kernel {name!r}", fix=f"its kernels: {', '.join(named) or 'none'}")
        return named[name]
    if len(found) != 1:
        raise TraceError(
            f"{path} has {len(found)} kernels: {', '.join(found) or 'none'}", fix=f"name one as {path}:NAME"
        )
    return next(iter(found.values()))


def _run(path: str) -> dict[str, Any]:
    import os
    import sys

    from ..codeobject.files import read_text

    try:
        code = compile(read_text(path, "a Python source file"), path, "exec")
    except SyntaxError as e:
        raise FlyError(f"not valid Python: {e.msg}", f"{path}:{e.lineno}", "fix the syntax") from None
    except ValueError as e:
        raise FlyError(f"not valid Python: {e}", path, "pass a Python source file") from None
    import types

    module = types.ModuleType("__flyllvm_kernel__")
    module.__file__ = path
    sys.modules[module.__name__] = module
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    try:
        exec(code, module.__dict__)
    except FlyError:
        raise
    except (Exception, SystemExit) as e:
        line = _line_in(path, e)
        raise FlyError(f"{type(e).__name__} while the file runs: {e}", line, "the file must import cleanly") from None
    finally:
        sys.path.remove(folder)
    return module.__dict__


@contextmanager
def authors_errors(spec: str) -> Iterator[None]:
    """Turns an exception that the author's own Python raises into bad input; one out of flyllvm's stays as it is.

    Args:
        spec: ``FILE.py`` or ``FILE.py:name``.
    """
    from ..ir.location import is_author_file

    try:
        yield
    except FlyError:
        raise
    except (Exception, SystemExit) as e:
        tb = e.__traceback__
        # A name that a module of ours does not have is the mistake of whoever asked for it.
        while tb is not None and tb.tb_next is not None and tb.tb_next.tb_frame.f_code.co_name != "__getattr__":
            tb = tb.tb_next
        if tb is None or not is_author_file(tb.tb_frame.f_code.co_filename):
            raise
        line = _line_in(spec.partition(":")[0], e)
        raise FlyError(f"{type(e).__name__} in the kernel: {e}", line, "correct the kernel's Python") from None


def _line_in(path: str, error: BaseException) -> str:
    """The last line of ``path`` in the error's traceback."""
    tb, line = error.__traceback__, 0
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == path:
            line = tb.tb_lineno
        tb = tb.tb_next
    return f"{path}:{line}" if line else path


def constants(pairs: list[str]) -> dict[str, Any]:
    """Compile-time values from ``NAME=VALUE`` texts; values are Python literals, else text.

    Raises:
        FlyError: There is no ``=``.
    """
    out: dict[str, Any] = {}
    for pair in pairs:
        name, eq, text = pair.partition("=")
        if not eq or not name.isidentifier():
            raise FlyError(f"--const {pair!r}", fix="write NAME=VALUE, e.g. --const BM=128")
        try:
            out[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            out[name] = text
    return out
