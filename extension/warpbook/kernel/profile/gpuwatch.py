"""`%gpuwatch`: one line under each cell, what the cell took on the GPU.

In the cell's way are only two looks at the clock and at torch's own counts, and
one small output. The server has the readings; a thread asks it for the rest.
"""

# IPython's decorators have no types
# mypy: disallow-untyped-decorators=False
from __future__ import annotations

import atexit
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from warpbook.kernel.link.allocator import Retries, begin_cell, end_cell
from warpbook.kernel.link.handover import AwaitedReceipt, Handover
from warpbook.kernel.link.late_output import LateOutput, said, wall_line
from warpbook.kernel.link.server_link import LinkError, ServerLink
from warpbook.kernel.link.where import kernel_id, notebook_path
from warpbook.kernel.runs.cell import cell_status, cell_title, did_nothing
from warpbook.protocol import PROTOCOL_VERSION, CellRun

#: a kernel that ends waits so long for the receipts that are still on their way
_AT_EXIT_S = 0.5
#: one that was turned off and is turned on again, for the same
_ENDING_S = 10.0

_ON = (
    "On. One line under each cell says what it took on the GPU. "
    "torch's peak memory counts anew in each cell. %gpuwatch off ends it."
)


@dataclass(frozen=True)
class CellInRun:
    """A cell that runs now."""

    source: str
    cell_id: str | None
    retries: Retries
    started_ms: float
    started_ns: int


class GpuWatch:
    """Watches the cells of one IPython shell while it is on."""

    def __init__(
        self,
        shell: Any,
        link: ServerLink,
        profile_next: Callable[[str | None, str], None],
    ) -> None:
        """Prepare; nothing is hooked yet.

        Args:
            shell: whose cells are watched.
            link: the way to the server.
            profile_next: has the next run of a cell profiled, by its id and source.
        """
        self._shell = shell
        self._link = link
        self._profile_next = profile_next
        #: the newest cell that ran
        self._newest: AwaitedReceipt | None = None
        self._handover: Handover | None = None
        #: turned off, and it may not have told the server yet
        self._ending: Handover | None = None
        self._running: CellInRun | None = None

    @magic_arguments()
    @argument(
        "state",
        nargs="?",
        choices=("on", "off", "status", "trace"),
        default="status",
        help="on, off, what is the case now, or a full trace of the next run of the "
        "cell that something held back, else of the newest cell.",
    )
    def gpuwatch(self, line: str) -> None:
        """Show one line under each cell: what it took on the GPU."""
        state = parse_argstring(GpuWatch.gpuwatch, line).state
        if state == "on":
            self._tell(self.turn_on())
        elif state == "off":
            self.turn_off()
            self._tell("Off: cells get no line.")
        elif state == "trace":
            self._tell(self.trace())
        elif self._handover is None:
            self._tell("Off. %gpuwatch on shows one line under each cell.")
        else:
            self._tell(self._handover.trouble or _ON)

    def turn_on(self) -> str:
        """Watch the cells from the next on; give what to tell the person."""
        if self._handover is None:
            if self._ending is not None:
                # its "off" must not come after the "on" of the new one
                self._ending.wait(_ENDING_S)
            try:
                self._handover = Handover(self._link, kernel_id(self._shell))
            except LinkError as problem:
                return f"Off: the figures come from the Jupyter server. {problem}"
            self._shell.events.register("pre_run_cell", self.before_cell)
            self._shell.events.register("post_run_cell", self.after_cell)
            atexit.register(self._at_exit)
        return _ON

    def turn_off(self) -> None:
        """Watch no more; receipts that are on their way still come."""
        handover, self._handover = self._handover, None
        self._running = None
        if handover is not None:
            self._shell.events.unregister("pre_run_cell", self.before_cell)
            self._shell.events.unregister("post_run_cell", self.after_cell)
            atexit.unregister(self._at_exit)
            handover.stop()
            self._ending = handover

    def trace(self) -> str:
        """Have the next run of a cell profiled; give what to tell the person."""
        suspect = None if self._handover is None else self._handover.suspect
        cell = suspect or self._newest
        if cell is None:
            return (
                "No cell has run since %gpuwatch on. Or put %%gpuprof on the first "
                "line of one."
            )
        self._profile_next(cell.run.cell_id, cell.source)
        return f"Run it again for a full trace: {cell.run.title or '(empty)'}"

    def before_cell(self, info: Any) -> None:
        """Note when the cell begins, and let torch's peaks begin there."""
        if self._running is None:
            self._running = CellInRun(
                source=info.raw_cell,
                cell_id=getattr(info, "cell_id", None),
                retries=begin_cell(),
                started_ms=time.time_ns() / 1e6,
                started_ns=time.perf_counter_ns(),
            )

    def after_cell(self, result: Any) -> None:
        """Note when it ended, show that, and have its receipt asked for."""
        ended_ns = time.perf_counter_ns()
        running, handover = self._running, self._handover
        if running is None or handover is None:
            return
        # after an interrupt the result has an info of its own, so the source decides
        if result is not None and result.info.raw_cell != running.source:
            return
        self._running = None
        if did_nothing(result):
            return
        run = CellRun(
            id=str(uuid.uuid4()),
            protocol=PROTOCOL_VERSION,
            kernel_id=handover.kernel_id,
            notebook=notebook_path(),
            cell_id=running.cell_id,
            execution_count=getattr(result, "execution_count", None),
            title=cell_title(running.source.splitlines()),
            started_ms=running.started_ms,
            ended_ms=running.started_ms + (ended_ns - running.started_ns) / 1e6,
            status=cell_status(result),
            allocators=end_cell(running.retries),
        )
        output = None
        if not handover.trouble:
            output = LateOutput(self._shell, wall_line(run))
        pending = AwaitedReceipt(run, output, running.source)
        handover.hand_in(pending)
        if not running.source.lstrip().startswith("%gpuwatch"):
            self._newest = pending

    def _at_exit(self) -> None:
        if self._handover is not None:
            self._handover.stop()
            self._handover.wait(_AT_EXIT_S)

    @staticmethod
    def _tell(text: str) -> None:
        display(said(text), raw=True)
