"""Requests of assistants: shown on pages, answered by a person there, or given up.

Who asks waits for the answer; a request that nobody waits for any more is closed on
all pages. Everything here runs on the server's event loop.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from typing import Literal

from msgspec.structs import replace

from warpbook.mcp.acting import ActState, Outcome
from warpbook.mcp.marked import Own
from warpbook.protocol import ActAnswer, ActClosed, ActRequest
from warpbook.server.stream.selection import encode
from warpbook.server.stream.stream_part import StreamPart
from warpbook.server.stream.viewers import Viewer, Viewers

_log = logging.getLogger(__name__)

#: requests that wait for a person or for what they allowed; more are refused at once
MOST_REQUESTS = 4
#: a page that has the notebook says so within this time
_SHOWN_S = 5.0
#: clients of MCP give a call up after a minute, most of them
_ANSWER_S = 40.0
#: a page whose connection was lost is back within this time, or is taken for closed
_BACK_S = 5.0
#: a kernel is busy for a moment when a page asks it for completions
_IDLE_S = 2.0
_LOOK_S = 0.1
#: what was refused is not asked again within this time
_REST_S = 20.0

_WORDS: dict[ActState, str] = {
    "refused": "The person refused. Do not ask again before you have talked to them.",
    "busy": (
        "The notebook's kernel runs code now. Ask again when it has ended; what only "
        "looks, such as gpus_now, answers meanwhile."
    ),
    "no page": (
        "No page of this server is open, so nobody can be asked. Ask the person to "
        "open the notebook in JupyterLab."
    ),
    "not open": (
        "No open page has this notebook with this cell. Ask the person to open it in "
        "JupyterLab."
    ),
    "not answered": (
        f"The person did not answer within {_ANSWER_S:.0f} s, and the question is "
        "closed. Ask them to look at the notebook, then try again."
    ),
    "page closed": "The page that showed the question was closed. Nothing was changed.",
    "too many": (
        f"{MOST_REQUESTS} questions wait for the person already. Wait for their "
        "answers."
    ),
}


class _Pending:
    def __init__(self, request: ActRequest) -> None:
        self.request = request
        #: the kernel or lab that it is about
        self.about = request.kernel_id or request.lab
        #: it waits for the kernel first, then it is sent to the pages
        self.state: Literal["waits", "new", "shown", "allowed", "ended"] = "waits"
        #: of the page that ended it
        self.answer: ActAnswer | None = None
        #: pages that show it, or do it
        self.pages: set[Viewer] = set()
        #: when the last of them went; None while there is one, and before
        self.left_s: float | None = None
        self.changed = asyncio.Event()

    async def leaves(self, state: str, within_s: float) -> bool:
        """Wait until it is in another state; False if it is late or the pages went."""
        end_s = time.monotonic() + within_s
        while self.state == state:
            until_s = end_s
            if self.left_s is not None:
                until_s = min(end_s, self.left_s + _BACK_S)
            if (rest_s := until_s - time.monotonic()) <= 0:
                return False
            self.changed.clear()
            change = asyncio.ensure_future(self.changed.wait())
            try:
                # `wait_for` forgets a cancellation that comes with the change
                await asyncio.wait([change], timeout=rest_s)
            finally:
                change.cancel()
        return True


class Acts(StreamPart):
    """Puts requests to the pages, and gives what came of each."""

    def __init__(self, viewers: Viewers, runs_code: Callable[[str], bool]) -> None:
        """Take the pages, and who knows whether the kernel of an id is at work."""
        self._viewers = viewers
        self._runs_code = runs_code
        self._pending: dict[str, _Pending] = {}
        #: by kernel or lab, when something about it was refused
        self._refused_s: dict[str, float] = {}
        #: one source at a time is judged, however many are allowed
        self.judging = asyncio.Lock()

    async def ask(self, request: ActRequest, run_s: float) -> Outcome:
        """Ask the person, and wait for what the page does.

        Of a lab nothing is left to do for the page, so it ends when it is allowed.

        Args:
            request: its `id` is made here.
            run_s: how long what was allowed is waited for; it is not ended after that.
        """
        outcome = await self._asked(request, run_s)
        # names and sources are the assistant's and the notebook's: none is logged
        _log.info("An assistant asked for %s: %s.", request.act, outcome.state)
        return outcome

    async def _asked(self, request: ActRequest, run_s: float) -> Outcome:
        if not self._viewers.is_anybody:
            return _outcome("no page")
        if len(self._pending) >= MOST_REQUESTS:
            return _outcome("too many")
        pending = _Pending(replace(request, id=secrets.token_urlsafe(16)))
        self._pending[pending.request.id] = pending
        try:
            if request.kernel_id and not await self._is_idle(request.kernel_id):
                return _outcome("busy")
            if self._was_refused(pending.about):
                return _outcome("refused")
            pending.state = "new"
            self._viewers.send_everyone(encode(pending.request))
            return await self._outcome_of(pending, run_s)
        finally:
            # also when who asked waits no more
            del self._pending[pending.request.id]
            if pending.state != "waits":
                self._viewers.send_everyone(encode(ActClosed(pending.request.id)))

    def _was_refused(self, about: str) -> bool:
        self._refused_s = {
            key: at
            for key, at in self._refused_s.items()
            if time.monotonic() - at < _REST_S
        }
        return about in self._refused_s

    async def _outcome_of(self, pending: _Pending, run_s: float) -> Outcome:
        if not await pending.leaves("new", _SHOWN_S):
            return _outcome("not open")
        if not await pending.leaves("shown", _ANSWER_S):
            gone = pending.left_s is not None
            return _outcome("page closed" if gone else "not answered")
        is_of_page = bool(pending.request.kernel_id)
        if pending.state == "allowed" and not is_of_page:
            return Outcome("allowed", "")
        if pending.state == "allowed" and not await pending.leaves("allowed", run_s):
            if pending.left_s is not None:
                return Outcome(
                    "page closed",
                    Own(
                        "The page was closed while the cell ran. What runs goes on; "
                        "its report, if there is one, is among the newest cells."
                    ),
                )
            return Outcome(
                "still running",
                Own(
                    f"The cell still runs after {run_s:.0f} s, and goes on. Its report "
                    "will be among the newest cells; gpus_now answers meanwhile. What "
                    "is measured later changes no cell."
                ),
            )
        answer = pending.answer
        assert answer is not None
        if answer.state == "refused":
            return _outcome("refused")
        state: ActState = "done" if answer.state == "done" else "failed"
        return Outcome(state, answer.words, answer.report, answer.is_applied)

    async def _is_idle(self, kernel_id: str) -> bool:
        until_s = time.monotonic() + _IDLE_S
        while self._runs_code(kernel_id):
            if time.monotonic() > until_s:
                return False
            await asyncio.sleep(_LOOK_S)
        return True

    def answer(self, page: Viewer, answer: ActAnswer) -> None:
        """Take what a page says; what it may not say now changes nothing."""
        pending = self._pending.get(answer.id)
        # a page that comes back, on another connection, says "shown" of what it does
        is_mine = pending is not None and (
            page in pending.pages or answer.state == "shown"
        )
        if pending is None or not is_mine:
            page.send(encode(ActClosed(answer.id)))
        elif answer.state == "shown":
            pending.pages.add(page)
            pending.left_s = None
            if pending.state == "new":
                pending.state = "shown"
            pending.changed.set()
        elif pending.state in ("shown", "allowed"):
            if answer.state == "allowed":
                pending.state = "allowed"
                self._close_others(pending, page)
            elif answer.state == "refused":
                self._refuse(pending.about, answer)
            elif answer.state != "done" or pending.state == "allowed":
                pending.state, pending.answer = "ended", answer
            pending.changed.set()

    def _refuse(self, about: str, answer: ActAnswer) -> None:
        """End all questions about it: a refusal is of what else waits, too."""
        self._refused_s[about] = time.monotonic()
        for pending in self._pending.values():
            if pending.about == about and pending.state in ("new", "shown"):
                pending.state, pending.answer = "ended", answer
                pending.changed.set()

    def _close_others(self, pending: _Pending, page: Viewer) -> None:
        for other in pending.pages - {page}:
            other.send(encode(ActClosed(pending.request.id)))
        pending.pages = {page}

    def leave(self, page: Viewer) -> None:
        """Note that a page is closed, or lost its connection."""
        for pending in self._pending.values():
            if page in pending.pages:
                pending.pages.remove(page)
                if not pending.pages:
                    pending.left_s = time.monotonic()
                pending.changed.set()

    def greeting(self) -> Iterable[bytes]:
        return [
            encode(pending.request)
            for pending in self._pending.values()
            if pending.state in ("new", "shown")
        ]


def _outcome(state: ActState) -> Outcome:
    return Outcome(state, Own(_WORDS[state]))
