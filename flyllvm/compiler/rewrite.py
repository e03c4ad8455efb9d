"""Rewriting of the author's functions so that their control flow can depend on run-time values.

A kernel, and every function of the author's that it calls, is compiled again from its source with branches and loops
turned into calls (``rewrite_ast``).  File, line numbers, closure and globals stay the author's.  The result is kept
for each code object.
"""

from __future__ import annotations

import _ast as ast
import builtins
from types import CodeType, FunctionType, MethodType, ModuleType

from ..errors import FlyError, TraceError
from ..expr import control_errors, control_flow, control_range
from ..ir.location import REGION_SUFFIX, is_author_file
from .freeze import is_partial
from .rewrite_ast import Rewriter
from .rewrite_names import local_names, walk
from .rewrite_nodes import HOOKS, REGION, copy_location, hook, locate, place
from .rewrite_source import find, future_flags, is_author_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..ir.builder import Builder
    from .rewrite_source import Found


class _Hooks:
    """What the rewritten code calls, as attributes: the hooks of ``expr``, and ``callee``."""

    if_ = staticmethod(control_flow.if_)
    for_ = staticmethod(control_range.for_)
    while_ = staticmethod(control_range.while_)
    ifexp = staticmethod(control_flow.ifexp)
    and_ = staticmethod(control_flow.and_)
    or_ = staticmethod(control_flow.or_)
    not_ = staticmethod(control_flow.not_)
    compare = staticmethod(control_flow.compare)
    plain = staticmethod(control_errors.plain)
    constexpr = staticmethod(control_errors.constexpr)
    known = staticmethod(control_errors.known)
    not_called = staticmethod(control_errors.not_called)
    caught = staticmethod(control_errors.caught)
    plain_range = staticmethod(control_errors.plain_range)
    callee: Callable[[Any], Any]


_PLAIN_MODULES = ("flyllvm", "math", "operator", "functools", "itertools")
#: id of a code object -> (itself, to keep it alive; what it became, ``None`` when it stays as it is).
_DONE: dict[int, tuple[CodeType, CodeType | None]] = {}
#: Flags of code whose call returns a generator or coroutine.
_NO_FUNCTION = 0x20 | 0x80 | 0x200
#: Functions of the author's whose source does not exist, or is not what was loaded.
_NO_SOURCE: dict[int, CodeType] = {}
#: Class -> its ``__call__`` where that is the author's.
_CALLABLE: dict[type, tuple[FunctionType | None]] = {}
_CELL = type((lambda x: lambda: x)(0).__closure__[0])  # type: ignore[index]
_HOOKS_CELL = _CELL(_Hooks)


def rewritten(fn: FunctionType) -> FunctionType:
    """The function with its control flow rewritten; itself where nothing is to do or its source is not available."""
    code = fn.__code__
    known = _DONE.get(id(code))
    if known is None:
        known = _DONE[id(code)] = (code, _rewrite(fn))
        if known[1] is not None:
            _DONE[id(known[1])] = (known[1], None)
    made = known[1]
    if made is None:
        return fn
    cells = dict(zip(code.co_freevars, fn.__closure__ or ()))
    cells[HOOKS] = _HOOKS_CELL
    closure = tuple([cells[name] for name in made.co_freevars])
    new = FunctionType(made, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    new.__kwdefaults__ = fn.__kwdefaults__
    return new


def callee(f: Any) -> Any:
    """What a rewritten function calls where the author wrote ``f(...)``."""
    kind = type(f)
    if kind is FunctionType:
        return rewritten(f)
    if kind is MethodType:
        inner = f.__func__
        if type(inner) is FunctionType:
            new = rewritten(inner)
            return f if new is inner else MethodType(new, f.__self__)
        return f
    if kind is type or (issubclass(kind, type) and kind.__call__ is type.__call__):
        return _constructor(f)
    if is_partial(kind):
        return kind(callee(f.func), *f.args, **f.keywords)
    called = _CALLABLE.get(kind)
    if called is None:
        method = next((vars(c)["__call__"] for c in kind.__mro__ if "__call__" in vars(c)), None)
        own = type(method) is FunctionType and is_author_code(method.__code__, method.__globals__)
        called = _CALLABLE[kind] = (method if own else None,)
    return f if called[0] is None else MethodType(rewritten(called[0]), f)


_Hooks.callee = staticmethod(callee)


def _constructor(cls: type) -> Any:
    """A class, or what makes its objects by its rewritten ``__init__``."""
    if cls.__module__ == "contextlib" and cls.__name__ == "suppress":
        return _careful(cls)
    init = cls.__init__  # type: ignore[misc]
    new = rewritten(init) if type(init) is FunctionType else init
    if new is init:
        return cls

    def construct(*args: Any, **kwargs: Any) -> Any:
        made = cls.__new__(cls, *args, **kwargs)
        if isinstance(made, cls):
            new(made, *args, **kwargs)
        return made

    return construct


def _careful(cls: Any) -> Any:
    """``contextlib.suppress`` that hides what says that the kernel cannot be traced only where it is asked to."""

    class Suppress(cls):  # type: ignore[misc]
        def __exit__(self, kind: Any, error: Any, tb: Any) -> Any:
            asked = any(issubclass(e, FlyError) for e in self._exceptions)
            return False if isinstance(error, TraceError) and not asked else super().__exit__(kind, error, tb)

    return Suppress


class AuthorErrors:
    """Context in which rewritten code runs: its errors get the author's line, and lost variables their reason."""

    def __init__(self, b: Builder) -> None:
        self.b = b

    def __enter__(self) -> None:
        """Refuses a kernel whose call would run nothing."""
        code = self.b.root_code
        if isinstance(code, CodeType) and code.co_flags & _NO_FUNCTION:
            raise TraceError(
                f"the kernel {code.co_name} is a generator or coroutine",
                self.b.kernel.loc,
                "yield belongs to the end of a range(..., init=[...]) loop only, in a kernel whose source is in a file",
            )

    def __exit__(self, kind: object, error: BaseException | None, tb: object) -> None:
        if isinstance(error, FlyError):
            error.at(control_errors.author_location(error, self.b.root_code) or self.b.kernel.loc)
            name = _without_source(error)
            if name:
                text = f"{name} runs as plain Python: its source must be in a file, unchanged since it was loaded"
                error.fix = f"{error.fix}; {text}" if error.fix else text
        elif isinstance(error, NameError):
            reason = control_errors.explain(error, self.b, self.b.root_code)
            if reason is not None:
                raise reason from None
        if isinstance(error, Exception) and not isinstance(error, FlyError):
            from .misuse import explain

            misuse = explain(error, self.b.root_code)
            if misuse is not None:
                raise misuse from error


def _without_source(error: BaseException) -> str | None:
    """The author's innermost function in a traceback, if its source was not found."""
    tb, name = error.__traceback__, None
    while tb is not None:
        code = tb.tb_frame.f_code
        if is_author_file(code.co_filename):
            name = code.co_name if id(code) in _NO_SOURCE and code.co_name != "<lambda>" else None
        tb = tb.tb_next
    return name


def _rewrite(fn: FunctionType) -> CodeType | None:
    code = fn.__code__
    if HOOKS in code.co_freevars or not is_author_code(code, fn.__globals__):
        return None
    found = find(code, fn.__globals__)
    if found is None:
        _NO_SOURCE[id(code)] = code
        return None
    return _compile(fn, found)


def _compile(fn: FunctionType, found: Found) -> CodeType | None:
    code = fn.__code__
    node = found.fresh()
    constants = _compile_time(node)
    _strip(node, code.co_firstlineno)
    names = local_names(node) | set(code.co_freevars)
    Rewriter(_plain_in(fn.__globals__, names)).visit(node)
    node.body[:0] = constants
    made = compile(_around(node, found.owner, code), code.co_filename, "exec", future_flags(code), dont_inherit=True)
    new = _inside(made, node.name)
    if HOOKS not in new.co_freevars:
        return None
    if not set(new.co_freevars) <= {*code.co_freevars, HOOKS}:
        raise TraceError(
            f"{fn.__qualname__} cannot be rewritten: its source reads other variables than its code",
            f"{code.co_filename}:{code.co_firstlineno}",
            "import the file again after editing it",
        )
    return _renamed(new, code.co_name, code.co_qualname)


def _compile_time(node: ast.FunctionDef) -> list[ast.stmt]:
    """Statements that refuse run-time values for parameters annotated ``Constexpr``."""
    a = node.args
    made: list[ast.stmt] = []
    for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs):
        kind = arg.annotation
        kind = kind.value if isinstance(kind, ast.Subscript) else kind
        if getattr(kind, "attr", getattr(kind, "id", None)) == "Constexpr":
            call = hook("constexpr", ast.Name(arg.arg, ast.Load()), ast.Constant(arg.arg), ast.Constant(node.name))
            made.append(place(ast.Expr(place(call, arg)), arg))
    return made


def _strip(node: ast.FunctionDef, first_line: int) -> None:
    """Leaves out what was evaluated when the function was made: decorators, defaults, annotations."""
    node.name = REGION  # a name of its own, so that the function's name in its body stays what it was
    marker = ast.Constant(None)
    marker.lineno = marker.end_lineno = first_line
    marker.col_offset = marker.end_col_offset = 0
    node.decorator_list = [marker]  # never run; it keeps the function's first line
    node.args.defaults = [copy_location(ast.Constant(None), d) for d in node.args.defaults]
    node.args.kw_defaults = [d and copy_location(ast.Constant(None), d) for d in node.args.kw_defaults]
    node.returns = None
    for arg in walk(node.args):
        if isinstance(arg, ast.arg):
            arg.annotation = None


def _around(node: ast.FunctionDef, owner: str | None, code: CodeType) -> ast.Module:
    """A module with the function inside another whose parameters are its free variables, so they are free again."""
    free = [n for n in code.co_freevars if owner is None or n != "__class__"]
    body: list[ast.stmt] = [node]
    if owner is not None:
        # Private names are spelled after the class.
        wrapper = ast.ClassDef(owner, [], [], [node], [])
        wrapper.type_params = []  # type: ignore[attr-defined]
        body = [wrapper] if owner in free else [ast.Global([owner]), wrapper]
    args = ast.arguments([], [ast.arg(n) for n in (*free, HOOKS)], None, [], [], None, [])
    maker = ast.FunctionDef("<maker>", args, body, [], None, None)
    maker.type_params = []  # type: ignore[attr-defined]
    for n in (maker, *body):
        if n is not node:
            copy_location(n, node)
    locate(maker, {})
    return ast.Module([maker], [])


def _plain_in(namespace: dict[str, Any], local: set[str]) -> Callable[[ast.expr], bool]:
    """A test for expressions whose call can never reach the author's code."""

    def plain(func: ast.expr) -> bool:
        if isinstance(func, ast.Name):
            return func.id not in local and func.id not in namespace and hasattr(builtins, func.id)
        while isinstance(func, ast.Attribute):
            func = func.value
            if isinstance(func, ast.Name) and func.id not in local:
                root = namespace.get(func.id)
                return isinstance(root, ModuleType) and root.__name__.partition(".")[0] in _PLAIN_MODULES
        return False

    return plain


def _inside(code: CodeType, name: str) -> CodeType:
    """The code object of a function's definition inside a module's."""
    while code.co_name != name:
        code = next(c for c in code.co_consts if isinstance(c, CodeType))
    return code


def _renamed(code: CodeType, name: str, qualname: str) -> CodeType:
    """The code with generated functions under the author's name, marked for ``ir.location``."""
    consts = []
    for const in code.co_consts:
        if isinstance(const, CodeType):
            if const.co_name.startswith(REGION) or const.co_varnames[:1] == (REGION,):
                base = qualname.removesuffix(REGION_SUFFIX)
                const = _renamed(const, name, base + REGION_SUFFIX)
            else:
                base = qualname.removesuffix(REGION_SUFFIX)
                const = _renamed(const, const.co_name, f"{base}.<locals>.{const.co_name}")
        consts.append(const)
    return code.replace(co_name=name, co_qualname=qualname, co_consts=tuple(consts))
