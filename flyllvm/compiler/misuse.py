"""Plain Python errors that come from wrong use of the language, as errors with the author's line.

Functions of the language check what is easily mixed up.  For all else this is the net: what Python raises inside of
flyllvm, or over one of its objects, becomes a `TraceError` that quotes the author's expression.  It runs on errors
only.
"""

from __future__ import annotations

import linecache
import re
import sys
from dis import opname

from ..errors import TraceError
from ..expr import control_errors
from ..ir.location import is_author_file
from .rewrite_source import is_author_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType, TracebackType
    from typing import Any

_LONGEST = 90
#: What NumPy and torch call what is spelled otherwise here.
_INSTEAD = {
    "T": "make a view with the strides turned: fx.make_view(t.iter, fx.make_layout(shape, stride))",
    "argmax": "compare in a loop over indices",
    "astype": "use .to(fx.Float32)",
    "copy": "load() a tensor, or fx.copy(atom, source, destination)",
    "item": "its value is known on the GPU only; print it with fx.printf",
    "max": "use t.load().reduce('max'), or fx.max(a, b)",
    "min": "use t.load().reduce('min'), or fx.min(a, b)",
    "ndim": "use fx.rank(t)",
    "numel": "use fx.size(t)",
    "reshape": "make a view: fx.make_view(t.iter, layout)",
    "size": "use fx.size(t), or t.shape",
    "sum": "use t.load().reduce('add')",
    "view": "make a view: fx.make_view(t.iter, layout)",
}
#: Part of one of Python's messages -> what to write.
_HINTS = (
    ("no len()", "use t.shape, or fx.size(t)"),
    ("ufunc", "NumPy computes on the host: use fx.math and the operators of numbers"),
)
_ROOM = f"{__package__.partition('.')[0]}."


def explain(error: Exception, root: object) -> TraceError | None:
    """The error for wrong use that a plain Python error stands for; ``None`` where it is the author's own.

    Args:
        error: What was raised while the kernel ran.
        root: Code object of the kernel's function.
    """
    calls: list[TracebackType] = []
    tb = error.__traceback__
    while tb is not None:
        calls.append(tb)
        tb = tb.tb_next
    while calls and is_author_file(calls[-1].tb_frame.f_code.co_filename) and not _is_author(calls[-1]):
        calls.pop()
    author = next((i for i in range(len(calls) - 1, -1, -1) if _is_author(calls[i])), None)
    if author is None:
        return None
    inside = calls[author + 1 :]
    made: tuple[str, str] | None = None
    if inside:
        made = _inside(error, calls[author], inside[0].tb_frame)
    elif _by_python(calls[author]):
        made = _over_ours(error, calls[author])
    return made and TraceError(made[0], control_errors.author_location(error, root), made[1])


def _is_author(tb: TracebackType) -> bool:
    return is_author_code(tb.tb_frame.f_code, tb.tb_frame.f_globals)


def _inside(error: Exception, author: TracebackType, entry: FrameType) -> tuple[str, str]:
    """Something of ours failed on what it was given."""
    code = entry.f_code
    if code.co_name == "__getattr__":
        text, _, use = str(error).partition(": ")
        asked = re.search(r"'(\w+)'", text)
        home = sys.modules.get(entry.f_globals["__name__"])
        return text, use or _similar(asked[1] if asked else "", home)
    said = f"{error}" or "no reason"
    what = f"{_expression(author) or code.co_name + '()'} cannot take {_given(entry)}: {said} ({type(error).__name__})"
    # Functions of the layout algebra come through a wrapper around them.
    code = getattr(entry.f_locals.get("fn"), "__code__", code)
    doc = code.co_consts[0] if code.co_consts and isinstance(code.co_consts[0], str) else ""
    head = doc.strip().partition("\n")[0]
    return what, f"{_signature(code)}" + (f": {head}" if head else "")


def _over_ours(error: Exception, author: TracebackType) -> tuple[str, str] | None:
    """Python itself refused to do something with an object or function of ours."""
    text, quoted = str(error), _expression(author)
    at = f"{quoted}: {text}" if quoted else text
    kinds = {n.rpartition(".")[2] for n in re.findall(r"""(?:['"]|\btype )([\w.]+)""", text)}
    if isinstance(error, AttributeError):
        if error.obj is None and (kinds & _classes().keys() or text == "__delitem__"):
            return at, "elements can be written, t[i] = x; nothing else of it changes"
        home = error.obj if isinstance(error.obj, type(sys)) else type(error.obj)
        if not _is_ours(home):
            return None
        return at, _INSTEAD.get(error.name or "") or _similar(error.name or "", error.obj)
    if any(said in text for said in ("only integers, slices", "NumPy arrays", "gufunc core")):
        return at, "the array is in host memory: pass it to the kernel as a tensor argument"
    if isinstance(error, ValueError) and "to unpack" in text:
        return at, "give as many names as there are values"
    if not isinstance(error, TypeError):
        return None
    called = re.match(r"([\w.<>]+)\(\) ", text)
    function = _functions().get(called[1]) if called else None
    if function is not None:
        return at, f"call it as {_signature(function, called[1])}"  # type: ignore[index]
    classes = _classes()
    owner = called[1].partition(".")[0] if called else ""
    if owner in classes:
        doc = (classes[owner].__doc__ or "").strip().partition("\n")[0]
        return at, f"{owner} is: {doc}"
    if kinds & classes.keys():
        hints = (h for part, h in _HINTS if part in text)
        return at, next(hints, "use what the object offers: its elements, its .load(), its numbers")
    found = _callee(author.tb_frame, quoted)
    if found is not None and _is_ours(found):
        return at, f"{found.__name__} is: {(found.__doc__ or '').strip().partition(chr(10))[0]}"
    return None


def _callee(frame: FrameType, expression: str) -> Any:
    """What an expression calls, looked up by name where it is called."""
    import ast

    try:
        call = ast.parse(expression, mode="eval").body
    except SyntaxError:
        return None
    names: list[str] = []
    node = call.func if isinstance(call, ast.Call) else call
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(call, ast.Call) or not isinstance(node, ast.Name):
        return None
    found = frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    for name in reversed(names):
        found = getattr(found, name, None)
    return found


def _by_python(tb: TracebackType) -> bool:
    """Whether the failing instruction is no ``raise`` of the author's."""
    return not opname[tb.tb_frame.f_code.co_code[tb.tb_lasti]].startswith(("RAISE", "RERAISE"))


def _expression(tb: TracebackType) -> str:
    """The author's expression that was being evaluated, in one line."""
    code = tb.tb_frame.f_code
    positions = list(code.co_positions())
    at = tb.tb_lasti // 2
    first, last, left, right = positions[at] if at < len(positions) else (None, None, None, None)
    if first is None or last is None or left is None or right is None or (first == last and right <= left):
        return ""
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(first, last + 1)]
    lines[-1] = lines[-1][:right]
    lines[0] = lines[0][left:]
    text = " ".join(line.decode(errors="replace").strip() for line in lines)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _given(frame: FrameType) -> str:
    """The arguments that a call of ours got, each shortened."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    shown = []
    for name in code.co_varnames[:count]:
        value = frame.f_locals.get(name)
        if name not in frame.f_locals or name == "self" or (name in ("args", "kwargs", "rest", "modes") and not value):
            continue
        try:
            text = repr(value)
        except Exception:
            text = f"a {type(value).__name__}"
        shown.append(f"{name}={text if len(text) <= 40 else text[:37] + '...'}")
    return ", ".join(shown) or "this"


def _signature(code: CodeType, name: str | None = None) -> str:
    count = code.co_argcount
    names = [n for n in code.co_varnames[:count] if n not in ("self", "cls")]
    rest = code.co_varnames[count : count + code.co_kwonlyargcount]
    at = count + code.co_kwonlyargcount
    if code.co_flags & 4:
        names.append(f"*{code.co_varnames[at]}")
        at += 1
    elif rest:
        names.append("*")
    names += rest
    if code.co_flags & 8:
        names.append(f"**{code.co_varnames[at]}")
    shown = (name or code.co_qualname).rpartition("<locals>.")[2].removesuffix(".__init__").removesuffix(".__call__")
    return f"{shown}({', '.join(names)})"


def _similar(name: str, obj: object) -> str:
    from difflib import get_close_matches

    names = [n for n in dir(obj) if not n.startswith("_")]
    close = get_close_matches(name, names, 3, 0.6)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"it has: {', '.join(names)}" if len(names) <= 40 else "see the names in the documentation"


def _is_ours(home: Any) -> bool:
    module = home.__name__ if isinstance(home, type(sys)) else getattr(home, "__module__", "")
    return f"{module}.".startswith(_ROOM)


def _modules() -> list[Any]:
    return [m for n, m in list(sys.modules.items()) if n.startswith(_ROOM) and m is not None]


def _classes() -> dict[str, type]:
    return {c.__name__: c for m in _modules() for c in list(vars(m).values()) if isinstance(c, type) and _is_ours(c)}


def _functions() -> dict[str, CodeType]:
    """Code objects of the functions and methods of ours, by the name that Python's errors call them."""
    found: dict[str, CodeType] = {}
    for module in _modules():
        for value in list(vars(module).values()):
            if not _is_ours(value):
                continue
            members = list(vars(value).values()) if isinstance(value, type) else [value]
            for f in members:
                f = getattr(f, "__func__", f)
                code = getattr(f, "__code__", None)
                if code is not None:
                    found[getattr(f, "__qualname__", code.co_name)] = code
    return found
