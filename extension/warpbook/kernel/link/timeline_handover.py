"""Hands all events of a run to the server, on a thread, after its report is out."""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING

from warpbook.kernel.link.server_link import LinkError, NoServer, NotKept, ServerLink
from warpbook.kernel.link.unkept import unkept
from warpbook.protocol import CellReport

if TYPE_CHECKING:
    from warpbook_profiler.events.columns import Columns
    from warpbook_profiler.events.run import Run

#: runs whose events wait to be handed over; a quick loop of profiles makes more
_MOST_WAITING = 3
#: so long after a cell its reply is out, and no thread is in its way
_AFTER_S = 0.1


class TimelineHandover:
    """One thread for all runs of this kernel; it ends with the kernel.

    Whatever goes wrong on it is the timeline's alone: the page that asks for the events
    is told by the server that they did not come.
    """

    def __init__(self) -> None:
        """Nothing waits; the thread starts with the first run."""
        self._waiting: queue.Queue[tuple[ServerLink, str, Columns, Run]]
        self._waiting = queue.Queue(_MOST_WAITING)
        self._thread: threading.Thread | None = None

    def count(self, events: Columns, run: Run) -> int | None:
        """Count the events that would be handed over; None if they can't be."""
        from warpbook_profiler.model.timeline_answers import MAX_EVENTS
        from warpbook_profiler.timeline import timeline_body as body

        count = int(body.drawn(events, run).sum())
        too_many = count > MAX_EVENTS or len(events.names) > body.MAX_NAMES
        return None if too_many or self._waiting.full() else count

    def hand_over(
        self, link: ServerLink, report_id: str, events: Columns, run: Run
    ) -> None:
        """Have the events of a report handed over; returns at once."""
        # only the thread of the cells puts anything in: there is room if there was
        self._waiting.put_nowait((link, report_id, events, run))
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._work, name="warpbook-timelines", daemon=True
            )
            self._thread.start()

    def _work(self) -> None:
        from warpbook_profiler.timeline import timeline_body as body

        while True:
            link, report_id, events, run = self._waiting.get()
            time.sleep(_AFTER_S)
            packed = body.pack(events, run)
            try:
                link.post_timeline(report_id, packed)
            except NotKept as problem:
                unkept.hold(problem)
            except LinkError:
                # the server tells the page that asks for the events
                pass
            # else they would stay in memory until the next run
            del events, run, packed


#: of this kernel
timelines = TimelineHandover()


def hand_in(
    link: ServerLink, report: CellReport, events: Columns | None, run: Run | None
) -> tuple[bool, str]:
    """Hand in a report, then all events of its run, where it has any.

    Returns:
        Whether a server has it, and words for the person where that is not kept yet or
        was not taken; none where there is nobody to hand it to.
    """
    words = ""
    try:
        link.post(report)
    except NotKept as problem:
        words = unkept.hold(problem)
    except NoServer:
        # no dashboard; the report is in the notebook
        return False, ""
    except LinkError as problem:
        return False, f"The dashboard did not get this report. {problem}"
    if report.timeline_events is not None and events is not None and run is not None:
        timelines.hand_over(link, report.id, events, run)
    return True, words
