"""The exceptions of flyllvm.

Every error says *what* went wrong (the object, the value got, the rule it broke), *where* (the
author's ``file:line``, where there is one) and how to *fix* it (the legal values, or what to write
instead).  A caller that embeds flyllvm catches ``FlyError``; nothing else is raised on purpose.
"""

from __future__ import annotations


def _shortened(text: str) -> str:
    """The text with numbers of hundreds of digits cut: messages repeat input, and nobody reads these."""
    if len(text) < 200:
        return text
    import re

    return re.sub(r"\d{100,}", lambda m: f"{m[0][:12]}...({len(m[0])} digits)", text)


class FlyError(Exception):
    """Base of all flyllvm errors.

    Args:
        what: One sentence with the object, the value got and the rule that it broke.
        where: The author's location, as text (``file.py:12``) or as any object whose ``str`` is one.
        fix: One sentence that says what to write instead, or the legal set.
    """

    def __init__(self, what: str, where: object | None = None, fix: str | None = None) -> None:
        self.what = what = _shortened(what)
        self.where = where
        self.fix = fix if fix is None else _shortened(fix)
        super().__init__(what)

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.what}" if self.where is not None else self.what]
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)

    def at(self, where: object) -> FlyError:
        """Returns this error with a location, unless it has one already."""
        if self.where is None:
            self.where = where
        return self

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        where = None if self.where is None else str(self.where)
        return (type(self), (self.what, where, self.fix))


class LayoutError(FlyError):
    """A layout operation has no answer that satisfies its law."""


class ParseError(FlyError):
    """Text in one of our grammars (layouts, fly IR, LLVM IR, targets) is malformed."""


class VerifyError(FlyError):
    """The fly IR breaks a rule: types, dominance, an atom's contract."""


class AtomError(FlyError):
    """An atom was built or used outside what its instruction can do."""


class StateError(FlyError):
    """A state field is unknown, unset, or has the wrong type."""


class TargetError(FlyError):
    """The target is unknown, or lacks what the kernel asks for."""


class CodegenError(FlyError):
    """LLVM refused the module or died on it; the message carries LLVM's words."""


class LinkError(FlyError):
    """An object file or code object is malformed or cannot be linked."""


class LaunchError(FlyError):
    """A launch does not fit the kernel or the device."""


class SimError(FlyError):
    """The simulator found a fault in the kernel, or cannot run it."""


class TraceError(FlyError):
    """Python code of a kernel cannot be traced as written."""
