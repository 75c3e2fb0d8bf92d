"""After a cell ran out of GPU memory: who held what, below its traceback.

The cell's own exception is left as it is. Nothing here holds on to it: it keeps
the frames alive, and they keep the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from IPython.display import display
from msgspec.structs import replace

from warpbook.colours import WARNING
from warpbook.kernel.link.allocator import gpu_uuid
from warpbook.kernel.link.server_link import LinkError, ServerLink
from warpbook.kernel.link.where import kernel_id, notebook_path
from warpbook.kernel.telemetry.holder_text import holder_lines, indented
from warpbook.protocol import PROTOCOL_VERSION, DeviceHolders, OutOfMemory
from warpbook_monitors.memory.post_mortem import FailedAllocation, explain, parse
from warpbook_monitors.plain_text import joined

#: where the classes named OutOfMemoryError come from
_LIBRARIES = ("torch", "cupy", "cupy_backends")
#: in the messages of those that have no class of their own
_MESSAGES = (
    "CUDA out of memory",
    "HIP out of memory",
    "CUDA error: out of memory",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "cudaErrorMemoryAllocation",
    "RESOURCE_EXHAUSTED: Out of memory",
)
#: "raise ... from error", so often
_MAX_CAUSES = 10
_STYLE = f"border-left: 3px solid {WARNING}; padding-left: 0.6em; max-width: 60em"


class OutOfMemoryWatch:
    """Watches the cells of one IPython shell for those that ran out."""

    def __init__(self, shell: Any, link: ServerLink) -> None:
        """Take the shell; nothing is hooked yet."""
        self._shell = shell
        self._link = link
        self._cell_id: str | None = None

    def install(self) -> None:
        self._shell.events.register("pre_run_cell", self.before_cell)
        self._shell.events.register("post_run_cell", self.after_cell)

    def remove(self) -> None:
        self._shell.events.unregister("pre_run_cell", self.before_cell)
        self._shell.events.unregister("post_run_cell", self.after_cell)

    def before_cell(self, info: Any) -> None:
        self._cell_id = getattr(info, "cell_id", None)

    def after_cell(self, result: Any) -> None:
        """Tell who held what, if the cell ran out of GPU memory."""
        message = _message(getattr(result, "error_in_exec", None))
        if message is None:
            return
        failed = _known(message)
        holders: DeviceHolders | None = None
        try:
            failure = OutOfMemory(
                protocol=PROTOCOL_VERSION,
                kernel_id=kernel_id(self._shell),
                notebook=notebook_path(),
                cell_id=self._cell_id,
                failed=failed,
            )
            report, problem = self._link.post_mortem(failure)
            sentence, holders = report.sentence, report.holders
            if problem is not None:
                # another time others hold the memory: the notebook keeps it
                sentence = f"{sentence} {problem}"
        except LinkError:
            index = failed.device_index
            gpu = None if index is None else f"GPU {index} of this process"
            sentence = explain(failed, gpu, None, "")
        display(_bundle(sentence, holders), raw=True)


def _message(error: BaseException | None) -> str | None:
    """Give the message if memory of a GPU ran out, there or in what caused it."""
    for cause in _causes(error):
        try:
            message = str(cause)
        except Exception:  # noqa: BLE001 - an exception of the person's own making
            continue
        named = any(
            kind.__name__ == "OutOfMemoryError"
            and kind.__module__.partition(".")[0] in _LIBRARIES
            for kind in type(cause).__mro__
        )
        if named or any(words in message for words in _MESSAGES):
            return message
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_MAX_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__


def _known(message: str) -> FailedAllocation:
    failed = parse(message)
    if failed.device_index is None:
        return failed
    return replace(failed, device_uuid=gpu_uuid(failed.device_index))


def _bundle(sentence: str, holders: DeviceHolders | None) -> dict[str, str]:
    rows = list(holder_lines(holders)) if holders else []
    notes = list(holders.notes) if holders else []
    text = [f"Out of GPU memory. {sentence}", *indented(rows), *notes]
    table = "".join(
        f'<tr><td style="text-align: right">{escape(size)}</td>'
        f'<td style="text-align: left">{escape(who)}</td></tr>'
        for size, who in rows
    )
    html = (
        f'<div class="warpbook-post-mortem" style="{_STYLE}">'
        f"<p><strong>Out of GPU memory.</strong> {escape(sentence)}</p>"
        + (f"<table>{table}</table>" if rows else "")
        + "".join(f"<p>{escape(note)}</p>" for note in notes)
        + "</div>"
    )
    return {"text/plain": joined(text), "text/html": html}
