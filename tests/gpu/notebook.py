"""A real kernel with warpbook loaded, in which cells run as a person runs them.

Each call is bounded: a cell that hangs fails with all that was said until then, and
takes no other test with it, since the kernel is killed at the end.
"""

from __future__ import annotations

import ast
import contextlib
import json
import queue
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_ANSWER_S = 120.0


@dataclass(frozen=True)
class Ran:
    """How a cell ended."""

    #: all that it printed and showed, its traceback too
    text: str
    #: name of the exception; None if all is well
    error: str | None
    took_s: float


class Notebook:
    """Runs one cell after the other."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        """Talk to a kernel that runs."""
        self._manager, self._client = manager, client
        #: a cell hung in it, or killed it
        self.is_lost = False

    def try_run(
        self, code: str, timeout_s: float = 120, interrupt_at: str | None = None
    ) -> Ran:
        """Run a cell that may fail.

        Args:
            code: the cell.
            timeout_s: a cell that takes longer fails the test.
            interrupt_at: the kernel is interrupted when the cell prints this.
        """
        began_s = time.monotonic()
        wanted = self._client.execute(code, stop_on_error=False)
        text, error = "", None
        while True:
            try:
                message = self._client.get_iopub_msg(timeout=1)
            except queue.Empty:
                state = "" if self._manager.is_alive() else "The kernel died. "
                if state or time.monotonic() - began_s > timeout_s:
                    self.is_lost = True
                    raise AssertionError(
                        f"{state}No end within {timeout_s:g} s of\n{code}\n"
                        f"It said until then:\n{text}"
                    ) from None
                continue
            if message["parent_header"].get("msg_id") != wanted:
                continue
            content = message["content"]
            if message["msg_type"] == "stream":
                text += content["text"]
                if interrupt_at is not None and interrupt_at in content["text"]:
                    self._manager.interrupt_kernel()
            elif message["msg_type"] in ("display_data", "execute_result"):
                text += content["data"].get("text/plain", "") + "\n"
            elif message["msg_type"] == "error":
                error = content["ename"]
                text += _ANSI.sub("", "\n".join(content["traceback"])) + "\n"
            elif message["msg_type"] == "status":
                if content["execution_state"] == "idle":
                    return Ran(text, error, time.monotonic() - began_s)

    def run(self, code: str, timeout_s: float = 120) -> str:
        """Run a cell that must not fail; give what it printed and showed."""
        ran = self.try_run(code, timeout_s)
        # a summary of failures shows the first line alone
        last = ran.text.strip().rpartition("\n")[2]
        assert ran.error is None, f"{last}\n{ran.text}\nin the cell\n{code}"
        return ran.text

    def value(self, expression: str) -> Any:
        """Give the value of an expression, by way of JSON."""
        asked = {"answer": f"__import__('json').dumps({expression})"}
        # what is printed meanwhile, by whomever, is no part of the answer
        reply = self._client.execute(
            "", user_expressions=asked, reply=True, timeout=_ANSWER_S
        )
        answer = reply["content"]["user_expressions"]["answer"]
        said = _ANSI.sub("", "\n".join(answer.get("traceback", ())))
        assert answer["status"] == "ok", f"{said}\nin {expression}"
        return json.loads(ast.literal_eval(answer["data"]["text/plain"]))

    def profile(
        self, code: str, options: str = "", timeout_s: float = 120
    ) -> dict[str, Any]:
        """Profile a cell; give the figures, without the timeline."""
        said = self.run(f"%%gpuprof -q -o p {options}\n{code}", timeout_s)
        if said:
            print(f"\nbeside the profile: {said}")
        return self.profiled()

    def profiled(self, name: str = "p") -> dict[str, Any]:
        """Give the figures of the profile in this variable."""
        hidden = ("lanes", "names")
        profile: dict[str, Any] = self.value(
            f"{{key: value for key, value in {name}.to_dict().items() "
            f"if key not in {hidden!r}}}"
        )
        print(summary(profile))
        return profile


def summary(profile: dict[str, Any]) -> str:
    """Say in some lines what must be known if a test fails."""
    complete = profile["completeness"]
    lines = [
        f"\n{profile['title'][:60]!r}: wall {profile['wall_ns']} ns, busy "
        f"{profile['gpu_busy_ns']} ns, {profile['kernel_calls']} kernels, "
        f"{complete['matched']} of {complete['launches']} launches matched, profiler "
        f"{profile['profiler_ns']} ns (first start {profile['first_start_ns']})",
        *(f"    warning: {warning}" for warning in complete["warnings"]),
    ]
    if profile["verdict"] is not None:
        verdict = profile["verdict"]
        lines.append(f"    {verdict['kind']}: {verdict['sentence']}")
    for finding in profile["findings"]:
        lines.append(
            f"    {finding['share']:4.0%} {finding['kind']}: {finding['evidence']}"
        )
    for row in profile["kernels"][:5]:
        lines.append(f"    {row['calls']:>9,} x {row['name'][:90]}")
    return "\n".join(lines)


@contextlib.contextmanager
def open_notebook() -> Iterator[Notebook]:
    """Start a kernel and load warpbook; kill it at the end, whatever it does."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=120)
        started = Notebook(manager, client)
        started.run("%load_ext warpbook")
        yield started
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
