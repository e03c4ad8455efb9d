"""What LLVM prints when it refuses a module or dies of it, made readable, and what to do about it."""

from __future__ import annotations

# As keywords of `compile_llvm`; of `flyc.compile` in limits={...}.
MORE_MEMORY = "split the kernel, or allow more memory with memory_limit_bytes= (flyc.compile: in limits={...})"
_LONGEST_LINE = 160
MORE_TIME = "split the kernel, or allow more time with timeout= (flyc.compile: in limits={...}; the command: --timeout)"

# What LLVM's words hold -> what to do; the first that matches.
_ADVICE = (
    (("bad_alloc", "out of memory", "MemoryError"), MORE_MEMORY),
    (("Inline asm not supported", "inline asm", "asm constraint", "reg for constraint", "register for constraint"),
     "use the intrinsic of the instruction: LLVM's wheel has no assembler for AMD GPUs"),
    (("unsupported library call", "no libcall", "ibcall"),
     "compute it in f32, or write it out: a GPU has no mathematical library to call"),
    (("calling convention", "non-compute shaders"), "define kernels as amdgpu_kernel, other functions as plain ones"),
    (("local memory (",), "use less LDS: smaller tiles, or one buffer for several uses"),
    (("stack frame size",), "make the private array smaller, or keep it in LDS"),
    (("unsupported initializer",), "initialise an LDS variable with 'poison', and store its contents in the kernel"),
    (("syncscope", "synchronization scope"), "use one of: singlethread, wavefront, workgroup, cluster, agent, or none"),
    (("unsupported cmpxchg", "unsupported atomic", "Unsupported atomic"),
     "use 32 or 64 bits, aligned, in global, LDS or flat memory"),
    (("code object version",), "use amdhsa_code_object_version 400, 500 or 600"),
    (("Illegal instruction detected",), "correct the immediate operand that LLVM names"),
    (("integer attribute",), "give the attribute whole numbers, as in \"64,256\""),
    (("is already defined",), "rename the symbol: KERNEL.kd is the kernel's descriptor"),
    (("wavefrontsize",), "leave the wave size out of target-features, and name it with the target"),
    (("scalable size",), "use vectors of a fixed length"),
    (("FrameIndex<",), "put every alloca into address space 5"),
    (("Cannot select", "Do not know how to", "not implemented yet", "LLVM failed an assertion"),
     "LLVM has no code for what it names there: use another width, type, address space or operation"),
)  # fmt: skip


def tidy(words: str) -> str:
    """LLVM's words without colours, build paths, the request to file a bug, and the stack."""
    for mark in ("PLEASE submit a bug report", "Stack dump:", "\n #0 "):
        words = words.partition(mark)[0]
    if "\x1b" in words:
        import re

        words = re.sub(r"\x1b\[[0-9;]*m", "", words)
    if "Assertion `" in words or "UNREACHABLE" in words:
        words = "\n".join([_failed(line) for line in words.splitlines()])
    return words.strip()[-4000:]


def _failed(line: str) -> str:
    """One line, a failed assertion without the program and the folders of whoever built LLVM."""
    import re

    found = re.match(r".*?/(llvm/\S+?\.(?:cpp|h):\d+): (.*): Assertion `(.*)' failed", line)
    if found:
        where, function, condition = found.groups()
        return f"LLVM failed an assertion: {condition} (in {_name_of(function)}, {where})"
    return re.sub(r"UNREACHABLE executed at \S*?/(llvm/\S+?)!?$", r"LLVM failed an assertion at \1", line)


def _name_of(function: str) -> str:
    """``llvm::SelectionDAG::getNode`` of a whole C++ signature."""
    return function.partition("(")[0].rpartition(" ")[2]


def advice(words: str, default: str) -> str:
    """What to do about LLVM's words."""
    for marks, fix in _ADVICE:
        if any(mark in words for mark in marks):
            return fix
    return default


def parse_error(error: str, ir_text: str) -> str:
    """LLVM's error of the parser, with no more of a long line than what is around the mark below it.

    One behind the last line is said to be at the end, where the author has no line.
    """
    begin = "<string>:"
    at = error.find(begin)
    number = error[at + len(begin) :].partition(":")[0]
    if at < 0 or not number.isdigit():
        return error
    if int(number) > len(ir_text.splitlines()):
        return f"{error[:at]}the end of the text: {error[at:].partition('error: ')[2].partition(chr(10))[0]}"
    lines = error.split("\n")
    if max(map(len, lines)) > _LONGEST_LINE:
        first = max(0, len(lines[-1]) - _LONGEST_LINE // 2) if lines[-1].endswith("^") else 0
        lines[-2:] = [line[first : first + _LONGEST_LINE] for line in lines[-2:]]
    return "\n".join(lines)


__all__ = ["MORE_MEMORY", "MORE_TIME", "advice", "parse_error", "tidy"]
