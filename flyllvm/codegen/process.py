"""One worker process: start, call, notice its end.

``os.posix_spawn`` starts it where there is one: importing ``subprocess`` alone takes longer than LLVM needs for a small
kernel, and a fork is out of the question in a process with HIP or threads.
"""

from __future__ import annotations

import marshal
import os
import sys
import time

from ..errors import CodegenError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_SCRIPT = os.path.join(_HERE, "worker.py")
# Imported as a module the worker's own code comes out of the bytecode cache, which a script's does not.
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); import worker; del sys.path[0]; worker.main(sys.argv[2:])"
#: Environment variable with the Python that runs the worker.
PYTHON_VARIABLE = "FLYLLVM_WORKER_PYTHON"
_MAX_LOG_BYTES = 1 << 20


class WorkerDied(Exception):
    """The worker ended, or was ended, during a call.

    Attributes:
        how: What happened, after "LLVM".
        words: What LLVM printed.
        late: It was ended because it took too long.
    """

    def __init__(self, how: str, words: str, late: bool = False) -> None:
        self.how = how
        self.late = late
        self.words = words
        super().__init__(how)


def default_python() -> str:
    """The Python that runs the worker.

    Raises:
        CodegenError: The running interpreter is not a Python command and none is named.
    """
    python = os.environ.get(PYTHON_VARIABLE) or sys.executable
    if not python:
        raise CodegenError(
            "this program embeds Python, so there is no interpreter to run the compile worker",
            fix=f"set {PYTHON_VARIABLE} to a Python that has llvmlite",
        )
    return python


def command(python: str) -> list[str]:
    """The command line of a worker.

    Our own interpreter skips its site set-up (a third of the start) and gets the directory of llvmlite by name; a
    foreign one finds its own packages.
    """
    if python == sys.executable:
        for path in sys.path:
            if os.path.isdir(os.path.join(path, "llvmlite")):
                flags = ["-I", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
                if sys.pycache_prefix:
                    flags += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
                return [python, *flags, "-c", _BOOT, _HERE, os.path.abspath(path)]
    return [python, _SCRIPT]


class WorkerProcess:
    """A running worker.

    Attributes:
        pid: Process id.
        parent: Id of the process that started it: a forked child must not use its pipes.
    """

    __slots__ = ("_log", "_poll", "_popen", "_sink", "_source", "_started", "dead", "parent", "pid")

    def __init__(self, python: str) -> None:
        self.parent = os.getpid()
        self.dead = False
        self._started = False
        self._popen: Any = None
        self._poll: Any = None
        argv = command(python)
        self._log = _log_file()
        try:
            self._start(argv)
        except OSError as e:
            os.close(self._log)
            raise CodegenError(
                f"the compile worker {argv[0]} cannot be started: {e}",
                fix=f"set {PYTHON_VARIABLE} to a Python that has llvmlite",
            ) from None

    def _start(self, argv: list[str]) -> None:
        ours_in, theirs_out = _pipe()
        theirs_in, ours_out = _pipe()
        try:
            if hasattr(os, "posix_spawn"):
                files = enumerate((theirs_in, theirs_out, self._log))
                actions = [(os.POSIX_SPAWN_DUP2, fd, standard) for standard, fd in files]
                self.pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)
            else:
                import subprocess

                self._popen = subprocess.Popen(argv, stdin=theirs_in, stdout=theirs_out, stderr=self._log)
                self.pid = self._popen.pid
        except OSError:
            os.close(ours_in)
            os.close(ours_out)
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self._source, self._sink = ours_in, ours_out

    # --- calls ------------------------------------------------------------------------------------

    def call(self, request: dict[str, Any], timeout: float | None) -> dict[str, Any]:
        """Sends a request and waits for its answer.

        Raises:
            WorkerDied: The worker ended or took longer than ``timeout`` seconds; it is dead afterwards.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        self._trim_log()
        guard = self._guard(timeout)
        try:
            self._write(marshal.dumps(request, 2))
            if not self._started:
                hello = self._read(deadline)
                self._started = True
                if "error" in hello:
                    return hello
            return self._read(deadline)
        except TimeoutError:
            self.kill()
            raise WorkerDied(f"did not finish within {timeout:g} s", self.words(), True) from None
        except (EOFError, OSError):
            how = self._obituary()
            if deadline is not None and time.monotonic() >= deadline:
                raise WorkerDied(f"did not finish within {timeout:g} s", self.words(), True) from None
            raise WorkerDied(how, self.words()) from None
        except BaseException:
            # Interrupted between request and answer: the stream is out of step.
            self.kill()
            raise
        finally:
            if guard is not None:
                guard.cancel()

    def _guard(self, timeout: float | None) -> Any:
        """A timer that ends the worker, where its pipes cannot be polled."""
        if self._popen is None or timeout is None:
            return None
        import threading

        timer = threading.Timer(timeout, self._popen.kill)
        timer.daemon = True
        timer.start()
        return timer

    def _write(self, body: bytes) -> None:
        view = memoryview(len(body).to_bytes(4, "little") + body)
        while view:
            view = view[os.write(self._sink, view) :]

    def _read(self, deadline: float | None) -> dict[str, Any]:
        head = self._exactly(4, deadline)
        answer = marshal.loads(self._exactly(int.from_bytes(head, "little"), deadline))
        if not isinstance(answer, dict):
            raise EOFError
        return answer

    def _exactly(self, count: int, deadline: float | None) -> bytes:
        parts = []
        while count:
            if deadline is not None:
                self._wait(deadline)
            part = os.read(self._source, min(count, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _wait(self, deadline: float) -> None:
        if self._popen is not None:
            return  # the guard watches the time
        if self._poll is None:
            import select

            self._poll = select.poll()
            self._poll.register(self._source, select.POLLIN | select.POLLHUP)
        left = deadline - time.monotonic()
        if left <= 0 or not self._poll.poll(left * 1e3):
            raise TimeoutError

    # --- the end ----------------------------------------------------------------------------------

    def words(self) -> str:
        """What LLVM printed during the last call, without the request to file a bug and the stack."""
        text = _read_log(self._log).decode("utf-8", "replace")
        if not text:
            return ""
        from .llvm_words import tidy

        return tidy(text)

    def _trim_log(self) -> None:
        os.lseek(self._log, 0, os.SEEK_SET)
        os.ftruncate(self._log, 0)

    def _obituary(self) -> str:
        """Waits for the process, and says how it ended."""
        self.dead = True
        code = self._reap()
        if code is None:
            return "ended its process"
        if code >= 0:
            return f"ended its process with exit status {code}"
        import signal

        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"ended its process with {name}"

    def _reap(self) -> int | None:
        if self._popen is not None:
            return int(self._popen.wait())
        try:
            _, status = os.waitpid(self.pid, 0)
        except ChildProcessError:
            return None  # somebody else's SIGCHLD handler was faster
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> None:
        """Ends the process; harmless when it is gone."""
        if self.dead:
            return
        self.dead = True
        if os.getpid() != self.parent:
            return
        try:
            if self._popen is not None:
                self._popen.kill()
            else:
                os.kill(self.pid, 9)
        except ProcessLookupError:
            pass
        try:
            self._reap()
        except KeyboardInterrupt:
            # The signal came between the two: it is answered when the dead process is collected.
            self._reap()
            raise

    def close(self) -> None:
        """Closes the pipes and the log; the worker ends when its input does."""
        for fd in (self._sink, self._source, self._log):
            try:
                os.close(fd)
            except OSError:
                continue


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are no standard streams, even where the program has closed those."""
    ends = os.pipe()
    return _above_standard(ends[0]), _above_standard(ends[1])


def _above_standard(fd: int) -> int:
    if fd > 2:
        return fd
    import fcntl

    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return moved


def _log_file() -> int:
    """An unnamed file that takes the worker's stderr: a pipe that nobody drains would block LLVM."""
    if hasattr(os, "memfd_create"):
        return _above_standard(os.memfd_create("flyllvm-worker"))
    import tempfile

    with tempfile.TemporaryFile() as f:
        return os.dup(f.fileno())


def _read_log(fd: int) -> bytes:
    size = os.fstat(fd).st_size
    start = max(0, size - _MAX_LOG_BYTES)
    if hasattr(os, "pread"):
        # Leaves the offset alone, which the worker shares.
        return os.pread(fd, size - start, start)
    os.lseek(fd, start, os.SEEK_SET)
    return os.read(fd, size - start)
