"""Offers pages this kernel's machine, whose GPUs their server may not have.

A kernel behind a gateway, or of a remote provisioner, runs elsewhere. It opens a comm
that says where, and a page whose server is on another machine asks over it for
telemetry. A page whose server is here asks for nothing.
"""

from __future__ import annotations

from typing import Any

import msgspec
from comm import create_comm
from comm.base_comm import BaseComm

from warpbook.kernel.link.view_feed import ViewFeed
from warpbook_monitors.machine import this_machine

TARGET = "warpbook.machine"


class MachineFeed:
    """This kernel's offer, from when the extension is loaded."""

    def __init__(self, shell: Any) -> None:
        """Look whether there are pages at all; nothing is sent yet."""
        self._has_pages = getattr(shell, "kernel", None) is not None
        self._comm: BaseComm | None = None
        self._feed: ViewFeed | None = None

    def offer(self) -> None:
        """Tell all pages of this kernel."""
        if self._has_pages:
            self._comm = create_comm(target_name=TARGET, data=_where())
            self._comm.on_msg(self._hear)

    def remove(self) -> None:
        comm, self._comm = self._comm, None
        if comm is not None:
            comm.close()

    def _hear(self, message: dict[str, Any]) -> None:
        content = message.get("content", {}).get("data")
        if self._comm is None or not isinstance(content, dict):
            return
        if content.get("view") == "who":
            # a page that was opened later
            self._comm.send(_where())
        elif content.get("view") == "here":
            if self._feed is None:
                self._feed = ViewFeed(self._send, plays=False)
            self._feed.keep(greeted=content.get("greeted") is True)

    def _send(self, telemetry: str) -> None:
        if self._comm is not None:
            self._comm.send({"telemetry": telemetry})


def _where() -> dict[str, Any]:
    return {"machine": msgspec.to_builtins(this_machine())}
