"""An output of a cell that is filled in later, while other cells run."""

from __future__ import annotations

import re
import sys
import textwrap
import uuid
from html import escape
from typing import Any

from warpbook.protocol import CellRun, Receipt
from warpbook_monitors import units
from warpbook_monitors.plain_text import joined

#: what is shown, by MIME type
Bundle = dict[str, str]

_LONGEST_LINE = 600
#: of a terminal; a frontend that shows HTML breaks lines itself
_COLUMNS = 80
_STYLE = "font-size: 85%; opacity: 0.7"
_SAID_STYLE = "white-space: normal; max-width: 60em"
#: between two clauses, and two sentences
_CLAUSE = re.compile(r"(?<=[,:;·]) ")
_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z%])")


def one_line(words: str) -> Bundle:
    """Write one small line."""
    text = joined([words[:_LONGEST_LINE]])
    html = f'<div class="warpbook-receipt" style="{_STYLE}">{escape(text)}</div>'
    return {"text/plain": text, "text/html": html}


def said(words: str) -> Bundle:
    """Write what a magic says: a paragraph, and on a terminal a line a sentence."""
    text = joined([words])
    lines = [line for sentence in _SENTENCE.split(text) for line in _wrapped(sentence)]
    html = f'<div class="warpbook-receipt" style="{_SAID_STYLE}">{escape(text)}</div>'
    return {"text/plain": "\n".join(lines), "text/html": html}


def _wrapped(line: str) -> list[str]:
    """Break a line between clauses, so that a command in it stays whole."""
    lines = [""]
    for clause in _CLAUSE.split(line):
        longer = f"{lines[-1]} {clause}".lstrip()
        if len(longer) <= _COLUMNS:
            lines[-1] = longer
        else:
            # one that is too long by itself is broken between words
            lines += textwrap.wrap(
                clause, _COLUMNS, break_long_words=False, break_on_hyphens=False
            )
    return [text for text in lines if text]


class LateOutput:
    """Shown now, under the cell that runs; changed later, from any thread."""

    def __init__(self, shell: Any, bundle: Bundle) -> None:
        self._publisher = shell.display_pub
        self._transient = {"display_id": f"warpbook-{uuid.uuid4()}"}
        # another thread, or another cell, has another parent
        self._parent = getattr(self._publisher, "parent_header", None)
        self._show(bundle, update=False)

    def update(self, bundle: Bundle) -> None:
        self._show(bundle, update=True)

    def _show(self, bundle: Bundle, update: bool) -> None:
        publisher = self._publisher
        io_thread = getattr(getattr(publisher, "pub_socket", None), "io_thread", None)
        if io_thread is None:
            # no ipykernel: IPython on a terminal prints
            lines = _wrapped(bundle["text/plain"])
            bundle = {**bundle, "text/plain": "\n".join(lines)}
            publisher.publish(bundle, transient=self._transient, update=update)
            return
        kind = "update_display_data" if update else "display_data"
        content = {"data": bundle, "metadata": {}, "transient": self._transient}

        def send() -> None:
            _flush()
            publisher.session.send(
                publisher.pub_socket,
                kind,
                content,
                parent=self._parent,
                ident=publisher.topic,
            )

        # publish() does the same, but first waits milliseconds for this thread
        io_thread.schedule(send)


def _flush() -> None:
    """Let what was printed come first; on the kernel's own thread nothing waits."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "pub_thread"):
            stream.flush()


def wall_line(run: CellRun) -> Bundle:
    """Say what the kernel knows by itself, until the receipt comes."""
    return one_line(units.duration(run.ended_ms - run.started_ms))


def no_receipt(run: CellRun, why: str) -> Bundle:
    """Say why there will be none; the cells after this one have no line."""
    wall = units.duration(run.ended_ms - run.started_ms)
    return one_line(f"{wall} · No receipts for now. {why}")


def receipt_line(receipt: Receipt, caution: str = "") -> Bundle:
    """Show the receipt as the server has worded it, and what is wrong with it."""
    view = receipt.view
    line = receipt.line if view is None else view.cell_line
    return one_line(f"{line} · {caution}" if caution else line)
