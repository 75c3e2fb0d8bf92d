"""Where a finished profile goes: a variable, the notebook, the dashboard."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from IPython.display import display

from warpbook.kernel.link.allocator import gpu_uuid
from warpbook.kernel.link.server_link import ServerLink
from warpbook.kernel.link.timeline_handover import hand_in, timelines
from warpbook.kernel.link.where import kernel_id, notebook_path
from warpbook.kernel.profile.gpuprof_options import Options
from warpbook.kernel.runs.cell import prompt_number, report_title
from warpbook.kernel.runs.profile import Notice, Profile
from warpbook.kernel.runs.runs import FastestRun, Runs
from warpbook.protocol import PROTOCOL_VERSION, CellReport
from warpbook_profiler.checklist.process import state_of_this_process
from warpbook_profiler.compare.compare import Comparison, shortened
from warpbook_profiler.files.stalls import keep_stalls
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.errors import TraceError

if TYPE_CHECKING:
    from warpbook.kernel.live.live_cell import LiveCell


@dataclass(frozen=True)
class Ran:
    """How the profiled code ended, and where it stood."""

    title: str
    status: Literal["ok", "error", "interrupted"]
    cell_id: str | None = None
    execution_count: int | None = None
    #: of a cell, with its lines as they are numbered; empty where nobody needs it
    code: str = ""


#: said of code that did not come to its end
_UNFINISHED = {
    "error": "The code raised an exception: this is of the time before it.",
    "interrupted": "The code was interrupted: this is of the time before it.",
}


class Delivery:
    """Ends the runs of a code and hands the profile over."""

    def __init__(self, shell: Any, link: ServerLink) -> None:
        self._shell = shell
        self._link = link

    def deliver(
        self,
        runs: Runs | LiveCell,
        options: Options,
        ran: Ran,
        previous: Profile | None = None,
        on_copies: Callable[[FastestRun], CellProfile] | None = None,
    ) -> Profile | TraceError:
        """Show the profile, or why there is none; give the one or the other.

        Args:
            previous: the profile of the same code's run before.
            on_copies: adds what changes to the code give, once it has run well.
        """
        # whatever happens now, an older profile is not taken for this one
        self._keep(options, None)
        if not isinstance(runs, Runs):
            outcome = runs.deliver(ran.status)
            if isinstance(outcome, Profile):
                self._keep(options, outcome)
            return outcome
        try:
            finished = runs.finish(failed=ran.status != "ok")
        except TraceError as problem:
            # asked to be quiet about figures, not about their absence
            display(Notice(f"No profile of this code: {problem}"))
            return problem
        except KeyboardInterrupt:
            display(Notice("No profile of this code: the reading was interrupted."))
            raise
        if on_copies is not None and ran.status == "ok":
            finished = _with_trials(finished, on_copies)
        if (
            options.save is not None
            and runs.not_saved is None
            and finished.figures.stalls is not None
        ):
            try:
                keep_stalls(options.save, finished.figures.stalls)
            except TraceError as problem:
                runs.not_saved = str(problem)
        if runs.not_saved is not None:
            display(Notice(runs.not_saved))
        ran = replace(ran, title=_title(ran, options, finished.figures))
        profile = Profile(
            finished.figures, ran.title, finished.window_ms, _gpus(finished)
        )
        profile.cell_id = ran.cell_id
        profile.code, profile.process = ran.code or None, state_of_this_process()
        if self._shell is not None:
            profile.report_id = str(uuid.uuid4())
        if ran.status != "ok":
            profile.notes = (_UNFINISHED[ran.status],)
        difference = None
        if previous is not None and ran.status == "ok":
            difference = _against(previous, profile)
            sentences = (difference.sentence, *difference.cautions)
            profile.notes = (f"Against its run before: {' '.join(sentences)}",)
        self._keep(options, profile)
        if not options.quiet:
            display(profile)
        if options.versus is not None:
            display(options.versus.diff(profile))
        self._hand_in(finished, profile, ran, difference)
        return profile

    def begin_live(self, options: Options, title: str, cell_id: str | None) -> LiveCell:
        """Begin to profile a code that runs for minutes."""
        # it needs NumPy, which takes long to import
        from warpbook.kernel.live import live_cell

        live: LiveCell = live_cell.LiveCell(
            self._shell,
            self._link,
            options.share,
            title=title,
            cell_id=cell_id,
            execution_count=prompt_number(self._shell),
            quiet=options.quiet,
            shapes=options.shapes,
        )
        live.again()
        return live

    def _keep(self, options: Options, profile: Profile | None) -> None:
        if options.output is not None and self._shell is not None:
            self._shell.push({options.output: profile})

    def _hand_in(
        self,
        finished: FastestRun,
        profile: Profile,
        ran: Ran,
        difference: Comparison | None,
    ) -> None:
        if profile.report_id is None:
            return
        started_ms, ended_ms = profile.window_ms
        events, run = finished.recorded.events, finished.recorded.run
        timeline_events = timelines.count(events, run)
        report = CellReport(
            id=profile.report_id,
            protocol=PROTOCOL_VERSION,
            kernel_id=kernel_id(self._shell),
            notebook=notebook_path(),
            cell_id=ran.cell_id,
            execution_count=ran.execution_count,
            title=ran.title,
            started_ms=started_ms,
            ended_ms=ended_ms,
            status=ran.status,
            profile=profile.figures,
            gpus=profile.gpus,
            notes=profile.notes,
            difference=None if difference is None else shortened(difference),
            timeline_events=timeline_events,
            checklist=profile.advise().figures,
        )
        _, words = hand_in(self._link, report, events, run)
        if words:
            display(Notice(words))


def _title(ran: Ran, options: Options, figures: CellProfile) -> str:
    """Name the line that took most, where the lines' times are known."""
    if options.output is not None or not figures.lines or not ran.code:
        return ran.title
    times_ns = {row.line: row.host_ns for row in figures.lines}
    return report_title(ran.code.splitlines(), times_ns)


def _with_trials(
    finished: FastestRun, on_copies: Callable[[FastestRun], CellProfile]
) -> FastestRun:
    """Add what changes gave; what they can't put back is told above the report."""
    try:
        figures = on_copies(finished)
    except TraceError as problem:
        display(Notice(str(problem)))
        return finished
    figures = finished.recorded.judged_by_stalls(figures)
    return dataclasses.replace(finished, figures=figures)


def _gpus(finished: FastestRun) -> tuple[str, ...]:
    """Give the UUIDs of the GPUs that worked."""
    devices = {device for device in finished.recorded.events.device.tolist()}
    uuids = [gpu_uuid(device) for device in sorted(devices) if device >= 0]
    return tuple(uuid for uuid in uuids if uuid is not None)


def _against(previous: Profile, profile: Profile) -> Comparison:
    """Compare; a caution comes with it if the GPU ran differently."""
    difference = previous.compared(profile)
    if difference.verdict not in ("less time", "more time"):
        return difference
    # only of a change the server is worth asking for clocks
    return previous.diff(profile).figures
