"""A child as the referee sees it: started, asked, stopped while it is not its turn."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from warpbook_labs.engines.host.lane import Bounds
from warpbook_labs.engines.host.messages import (
    LENGTH,
    MOST_BYTES,
    Command,
    Done,
    Failed,
    Memory,
    Ready,
    Reply,
    Run,
    Setup,
    Transport,
    framed,
    reply_of,
)
from warpbook_labs.lab.texts import INVALID_MESSAGE
from warpbook_labs.results.device import Kind
from warpbook_labs.sandbox.children import PLAYER_PREFIX, OwnFolder, ran_and_delayed_s
from warpbook_monitors.python_path import NOWHERE, own_path

_CHILD = "warpbook_labs.engines.host.child"
#: so often it is looked at how much memory it takes
_LOOK_MS = 20
_MOST_STDERR_BYTES = 4096


class Lost(Exception):
    """The child is of no use any more; the message is for the learner."""

    def __init__(self, kind: Kind, message: str, of_hidden: str = "") -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.of_hidden = of_hidden or message


class CantBegin(Exception):
    """A child can't begin here, for no fault of a source; the message says why."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message)
        self.kind = failed.kind


class Raised(Exception):
    """The source raised an exception; the message is for the learner."""


class ChildHandle:
    """One child, learner or baseline."""

    def __init__(
        self,
        transport: Transport,
        has_gpu: bool,
        memory: tuple[Memory, ...],
        hidden: tuple[str, ...],
        bounds: Bounds,
        is_early: bool = True,
        is_traced: bool = False,
    ) -> None:
        """Start it; `begin` waits until it is ready."""
        self._folder = OwnFolder(PLAYER_PREFIX)
        self.folder = Path(self._folder.name)
        self._bounds = bounds
        request_end, self._asked = os.pipe2(os.O_CLOEXEC)
        self._told, answer_end = os.pipe2(os.O_CLOEXEC)
        self._held = b""
        self._is_stopped = False
        #: it said that it ends
        self.is_over = False
        descriptors = [part.descriptor for part in memory if part.descriptor >= 0]
        self._process = subprocess.Popen(
            [sys.executable, "-m", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=NOWHERE,
            env=_environment(str(self.folder)),
            pass_fds=(request_end, answer_end, *descriptors),
        )
        setup = Setup(
            transport,
            has_gpu,
            memory,
            request_end,
            answer_end,
            hidden,
            is_early,
            str(self.folder),
            is_traced,
        )
        stdin, stderr = self._process.stdin, self._process.stderr
        if stdin is None or stderr is None:
            raise RuntimeError("A child was started without its pipes.")
        self._stderr = stderr
        os.set_blocking(stderr.fileno(), False)
        with contextlib.suppress(BrokenPipeError), stdin:
            stdin.write(msgspec.msgpack.encode(setup))
        os.close(request_end)
        os.close(answer_end)

    @property
    def pid(self) -> int:
        return self._process.pid

    def begin(self) -> str:
        """Wait until it is shut in; tell in words how well.

        Raises:
            CantBegin: it can't begin here.
            Lost: it ended.
        """
        reply = self.hear(self._bounds.start_s)
        if isinstance(reply, Failed):
            raise CantBegin(reply)
        if not isinstance(reply, Ready):
            raise Lost("crash", INVALID_MESSAGE)
        return reply.isolation

    def ask(self, command: Command, patience_s: float) -> None:
        """Have it do something, and wait until it says that it did.

        Raises:
            Lost: it did not, and never will.
            Raised: the source raised an exception.
        """
        self.go_on()
        self.send(command)
        self.done(command, patience_s)

    def send(self, command: Command) -> None:
        left = framed(command)
        try:
            while left:
                left = left[os.write(self._asked, left) :]
        except BrokenPipeError:
            raise self._ended() from None

    def done(self, command: Command, patience_s: float) -> None:
        """Wait until it says that this is done; see `ask`."""
        reply = self.hear(patience_s)
        turn = command.turn if isinstance(command, Run) else 0
        if isinstance(reply, Failed):
            self.is_over = reply.ends
            raise Raised(reply.message)
        if not isinstance(reply, Done) or (turn and reply.turn != turn):
            raise Lost("crash", "It sent an unexpected answer.")

    def hear(self, patience_s: float) -> Reply:
        """Wait for what it says next.

        Raises:
            Lost: it says nothing, ended, or sends an invalid message.
        """
        # what it waits for a core is not held against it
        _, delayed_s = ran_and_delayed_s(self.pid)
        until_s = time.monotonic() + patience_s - delayed_s
        poll = select.poll()
        poll.register(self._told, select.POLLIN)
        while True:
            reply = self._reply()
            if reply is not None:
                return reply
            if poll.poll(_LOOK_MS):
                part = os.read(self._told, MOST_BYTES)
                if not part:
                    raise self._ended()
                self._held += part
                continue
            self._look()
            if time.monotonic() > until_s + ran_and_delayed_s(self.pid)[1]:
                raise Lost("hang", f"It did not end within {patience_s:g} s.")

    def _reply(self) -> Reply | None:
        if len(self._held) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self._held)
        if length > MOST_BYTES:
            raise Lost("crash", INVALID_MESSAGE)
        end = LENGTH.size + length
        if len(self._held) < end:
            return None
        body, self._held = self._held[LENGTH.size : end], self._held[end:]
        try:
            reply: Reply = reply_of(body)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise Lost("crash", INVALID_MESSAGE) from None
        return reply

    def _look(self) -> None:
        """Look how much it takes.

        Raises:
            Lost: too much.
        """
        with contextlib.suppress(OSError, ValueError, KeyError):
            status = Path(f"/proc/{self.pid}/status").read_text(errors="replace")
            lines = (line.partition(":") for line in status.splitlines())
            fields = {name: words.split() for name, _, words in lines}
            taken = int(fields["RssAnon"][0]) << 10
            threads = int(fields["Threads"][0])
            if taken > self._bounds.memory_bytes:
                most = self._bounds.memory_bytes >> 20
                raise Lost("crash", f"It took more than {most:,} MiB of memory.")
            if threads > self._bounds.threads:
                most = self._bounds.threads
                raise Lost("crash", f"It started more than {most:,} threads.")
            if len(os.listdir(self.folder)) > self._bounds.files:
                most = self._bounds.files
                raise Lost("crash", f"It made more than {most:,} files.")

    def stop(self) -> None:
        """Have it stand still, with all its threads.

        Raises:
            Lost: it ended instead.
        """
        if self._is_stopped or self.is_over:
            return
        self._process.send_signal(signal.SIGSTOP)
        if self._process.returncode is not None:
            raise self._ended()
        how = os.WSTOPPED | os.WEXITED | os.WNOWAIT
        state = os.waitid(os.P_PID, self.pid, how)
        if state is None or state.si_code != os.CLD_STOPPED:
            raise self._ended()
        self._is_stopped = True

    def go_on(self) -> None:
        if self._is_stopped:
            self._is_stopped = False
            self._process.send_signal(signal.SIGCONT)

    def _ended(self) -> Lost:
        words = "Its process ended before it was done."
        return Lost("crash", self._how_it_ended(), words)

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(2)
        except subprocess.TimeoutExpired:
            return "It closed its pipe to the grader."
        how = f"with exit code {code}"
        if code < 0:
            how = f"by {signal.Signals(-code).name}"
        words = (self._stderr.read() or b"")[-_MOST_STDERR_BYTES:]
        last = words.decode(errors="replace").strip().rpartition("\n")[2]
        said = f": {last[:300]}" if last else ""
        return f"Its process ended {how} before it was done{said}."

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._stderr.close()
        for descriptor in (self._asked, self._told):
            os.close(descriptor)
        self._folder.cleanup()


def _environment(folder: str) -> dict[str, str]:
    """Give what Python, PyTorch and CUDA need to start, and nothing else."""
    kept = ("PATH", "LANG", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_HOME")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "PYTHONPATH": own_path(),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": folder,
        "TMPDIR": folder,
        "TORCHINDUCTOR_CACHE_DIR": folder,
        # or libraries would look for it in files that are closed
        "USER": "learner",
        "OMP_NUM_THREADS": "1",
        "CUDA_CACHE_DISABLE": "1",
        # PyTorch 2.12 has operators that Triton compiles, which starts a program
        "TORCH_DISABLE_NATIVE_JIT": "1",
    }
