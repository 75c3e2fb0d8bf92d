"""Every message between server, browser and kernel, typed once.

TypeScript types are generated from here (`make protocol`); CI fails on drift.
The telemetry records themselves are `warpbook_monitors.frames`, because a
recording is the stream on disk.

The browser opens `<base_url>/warpbook/api/v1/stream`. The server says `Hello`.
The client answers `Subscribe`, as often as it likes; then come `Frame`s, and
`Gap`, `Devices`, `CellReport` and `Error` as they happen.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from warpbook_monitors.alerts.alert import Alert
from warpbook_monitors.archive.limits import Keeping
from warpbook_monitors.archive.record import KeptRecord, RecordKind
from warpbook_monitors.frames import (
    PROTOCOL_VERSION,
    Absence,
    Device,
    Devices,
    Event,
    Frame,
    Gap,
    Hello,
    Replay,
)
from warpbook_monitors.history.span import DeviceSpan, MetricSpan
from warpbook_monitors.machine import Machine
from warpbook_monitors.memory.holders import DeviceHolders, Holder
from warpbook_monitors.memory.outlook import MemoryOutlook
from warpbook_monitors.memory.post_mortem import FailedAllocation
from warpbook_monitors.verdicts.health import Condition
from warpbook_monitors.verdicts.verdict import Verdict
from warpbook_profiler.checklist.answers import Checklist
from warpbook_profiler.checklist.view import ChecklistView
from warpbook_profiler.compare.compare import Comparison
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.live import Live
from warpbook_profiler.model.report_view import (
    FigureGroup,
    LabelledFigure,
    ReportTable,
    ReportView,
)
from warpbook_profiler.model.timeline_answers import (
    TimelineDetails,
    TimelineMatches,
    TimelineStatistics,
    TimelineWindow,
)

__all__ = [
    "PROTOCOL_VERSION",
    "Absence",
    "Act",
    "ActAnswer",
    "ActClosed",
    "ActRequest",
    "Alert",
    "Alerts",
    "Allocator",
    "Capabilities",
    "CellProfile",
    "CellBand",
    "CellReport",
    "CellRun",
    "ChecklistView",
    "ClientMessage",
    "CloseCode",
    "Comparison",
    "Condition",
    "Detail",
    "DetailColumn",
    "Device",
    "DeviceHolders",
    "DeviceReceipt",
    "DeviceReceiptView",
    "DeviceSpan",
    "Devices",
    "Error",
    "Event",
    "FailedAllocation",
    "Frame",
    "Gap",
    "Health",
    "Hello",
    "Holder",
    "Holders",
    "Keeping",
    "Live",
    "MemoryOutlook",
    "MetricSpan",
    "OutOfMemory",
    "Outlook",
    "PostMortem",
    "Receipt",
    "ReceiptView",
    "KeptRecord",
    "RecordKind",
    "RecordList",
    "Replay",
    "ServerMessage",
    "SpanStatistics",
    "SpanView",
    "StateNow",
    "Subscribe",
    "TimelineDetails",
    "TimelineMatches",
    "TimelineStatistics",
    "TimelineWindow",
    "Unsubscribe",
    "Verdict",
    "Verdicts",
]

#: A client message is refused beyond this size.
MAX_CLIENT_MESSAGE_BYTES = 4096
#: A cell report is refused beyond this size.
MAX_REPORT_BYTES = 1_000_000

#: Environment of kernels that a warpbook server starts.
ENV_INGEST_URL = "WARPBOOK_INGEST_URL"
ENV_INGEST_SECRET = "WARPBOOK_INGEST_SECRET"


class CloseCode:
    """Why the server closed a stream, in the range that RFC 6455 leaves free."""

    #: the client speaks another version of the protocol
    PROTOCOL_VERSION = 4001
    #: too many messages that could not be understood
    GARBAGE = 4002
    #: the server's limit of viewers is reached
    TOO_MANY_VIEWERS = 4003


class Subscribe(Struct, frozen=True, tag="subscribe", forbid_unknown_fields=True):
    """Ask for frames; a later one replaces an earlier one."""

    protocol: int
    #: frames per second; bounded by the server's base rate
    rate_hz: float = 10.0
    #: ids of the devices wanted; None is all
    devices: tuple[str, ...] | None = None
    #: send what the history holds after this Unix time in ms
    since_ms: float | None = None
    #: of a recording, also what it would have shown before it began to be played
    played_before: bool = False


class Unsubscribe(Struct, frozen=True, tag="unsubscribe", forbid_unknown_fields=True):
    """Stop the frames and keep the connection (a hidden page)."""


class ActAnswer(Struct, frozen=True, tag="act_answer", forbid_unknown_fields=True):
    """How it stands on this page with what an assistant asked for."""

    #: of the `ActRequest`
    id: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]
    state: Literal["shown", "allowed", "refused", "done", "failed"]
    #: whether the cell's text was replaced
    is_applied: bool = False
    #: of what was done, the report; None where there is none
    report: Annotated[str, Meta(pattern="^[A-Za-z0-9-]{1,64}$")] | None = None
    #: what was done or why it was not
    words: Annotated[str, Meta(max_length=500)] = ""


ClientMessage = Subscribe | Unsubscribe | ActAnswer


class Error(Struct, frozen=True, tag="error"):
    """The last client message was refused; the stream goes on."""

    code: Literal["garbage", "protocol_version", "rate", "devices", "since"]
    message: str


class CellReport(Struct, frozen=True, tag="cell_report"):
    """The profile of one cell, from the kernel that ran it to every open view.

    Of a trace file the server makes one, for the view that asks: `file` names it, and
    what belongs to a kernel is empty.
    """

    #: unique, chosen by the kernel
    id: Annotated[str, Meta(pattern="^[A-Za-z0-9-]{1,64}$")]
    protocol: int
    kernel_id: str
    #: the notebook's file as the kernel was started for it: to show, not to match
    notebook: str | None
    #: id of the cell in the notebook, where the frontend told the kernel
    cell_id: str | None
    execution_count: int | None
    #: the name of `-o`, else the line of the cell that tells most
    title: Annotated[str, Meta(max_length=200)]
    started_ms: float
    #: of a code that is running: when this was told
    ended_ms: float
    status: Literal["running", "ok", "error", "interrupted"]
    #: of a long cell: its newest window, and at its end the one that shows best what
    #: held it back
    profile: CellProfile
    #: UUIDs of the GPUs that worked
    gpus: tuple[str, ...] = ()
    #: how it differs from the same cell's run before, in words
    notes: tuple[str, ...] = ()
    #: the whole comparison with that run; None where there was none
    difference: Comparison | None = None
    #: how many events come after the report, for its timeline; None if none do
    timeline_events: int | None = None
    #: of a long cell that is profiled in windows; None for any other
    live: Live | None = None
    #: the trace file that it was read from, by its path for Jupyter; None of a cell
    file: str | None = None
    #: the report as it is shown, which the server makes; None on its way there
    view: ReportView | None = None
    #: what the kernel answered, which knows the code; None on the way to views, which
    #: ask for it, and where nobody answered yet
    checklist: Checklist | None = None


class Verdicts(Struct, frozen=True, tag="verdicts"):
    """What holds each GPU back; comes once a second, and when a kind changes."""

    time_ms: float
    #: the longest time that a verdict covers; each verdict has its own
    window_s: float
    #: by device id; a GPU that is not read now is left out
    verdicts: dict[str, Verdict]


class Health(Struct, frozen=True, tag="health"):
    """What slowed each GPU over the last minute; comes once a second."""

    time_ms: float
    window_s: float
    #: by device id, worst first; a GPU that is not read now is left out
    conditions: dict[str, tuple[Condition, ...]]


class Holders(Struct, frozen=True, tag="holders"):
    """Who holds the memory of each GPU; comes every few seconds."""

    time_ms: float
    #: by device id; a GPU that is not read now is left out
    devices: dict[str, DeviceHolders]


class Outlook(Struct, frozen=True, tag="outlook"):
    """Where the memory of each GPU is heading; comes every few seconds."""

    time_ms: float
    window_s: float
    #: by device id; a GPU without a reading of its memory is left out
    devices: dict[str, MemoryOutlook]


class PostMortem(Struct, frozen=True, tag="post_mortem"):
    """A cell ran out of GPU memory: who held what at that moment."""

    time_ms: float
    kernel_id: str
    notebook: str | None
    cell_id: str | None
    #: id of the device that was full; None where that is not known
    device: str | None
    #: what the failed allocation asked for
    asked_bytes: int | None
    holders: DeviceHolders | None
    #: the finding and what to do, for a person
    sentence: str


class OutOfMemory(Struct, frozen=True):
    """A cell that ran out, as its kernel saw it: `POST /v1/out-of-memory`.

    The ingest answers with the `PostMortem`.
    """

    protocol: int
    kernel_id: str
    notebook: str | None
    cell_id: str | None
    failed: FailedAllocation


class Allocator(Struct, frozen=True):
    """What torch's caching allocator counted in a kernel, over one cell."""

    #: CUDA's index in that kernel, and the UUID of the GPU where torch tells it
    index: Annotated[int, Meta(ge=0)]
    uuid: str | None
    allocated_bytes: Annotated[int, Meta(ge=0)]
    reserved_bytes: Annotated[int, Meta(ge=0)]
    #: the most within the cell
    peak_allocated_bytes: Annotated[int, Meta(ge=0)]
    #: how often memory had to be freed and asked for again within the cell
    retries: Annotated[int, Meta(ge=0)]


class CellRun(Struct, frozen=True):
    """A cell that ran, as its kernel saw it: `POST /v1/cells` of the ingest."""

    #: unique, chosen by the kernel
    id: Annotated[str, Meta(pattern="^[A-Za-z0-9-]{1,64}$")]
    protocol: int
    kernel_id: str
    notebook: str | None
    cell_id: str | None
    execution_count: int | None
    #: first line of the cell
    title: Annotated[str, Meta(max_length=200)]
    started_ms: float
    ended_ms: float
    status: Literal["ok", "error", "interrupted"]
    #: one for each GPU that torch used; empty where torch was not loaded
    allocators: tuple[Allocator, ...] = ()


class DeviceReceipt(Struct, frozen=True):
    """One GPU over one cell. The figures are the whole device's."""

    span: DeviceSpan
    #: whether others held memory on it meanwhile; None where that is not known
    shared: bool | None
    #: what a short cell, or a missing reading, makes unsure, in words
    notes: tuple[str, ...] = ()
    #: what held the GPU back; None where too little was read of it
    verdict: Verdict | None = None


class DeviceReceiptView(Struct, frozen=True):
    """One GPU of a receipt, as it is shown."""

    #: "GPU 0"; its id where it is no longer there
    name: str
    #: this run beside the one before; None where the device is no longer there
    table: ReportTable | None
    #: what slowed it, worst first
    conditions: tuple[Condition, ...]
    notes: tuple[str, ...]


class ReceiptView(Struct, frozen=True):
    """A receipt as it is shown: worded by the server, drawn by kernel and page."""

    #: the line under the cell: with the run before, and what to do if it was held back
    cell_line: str
    #: something held it back, so that a trace is offered
    is_held_back: bool
    figures: tuple[LabelledFigure, ...]
    devices: tuple[DeviceReceiptView, ...]
    #: what torch counted, one for each GPU
    allocators: tuple[FigureGroup, ...]
    #: what holds for every GPU
    notes: tuple[str, ...]


class Receipt(Struct, frozen=True, tag="receipt"):
    """What a cell cost, from the server's history; no trace was taken."""

    cell: CellRun
    wall_ms: float
    #: the GPUs that the cell may have used
    devices: tuple[DeviceReceipt, ...]
    #: one line for a person, figures and units
    line: str
    #: the same cell's run before, without its own "previous"
    previous: Receipt | None = None
    #: the server makes it; None within "previous"
    view: ReceiptView | None = None


#: the tools of assistants that need a person's consent
Act = Literal["profile_cell", "try_change", "apply_change", "lab_check", "lab_submit"]


class ActRequest(Struct, frozen=True, tag="act_request"):
    """An assistant asks for something; the page that can do it asks the person.

    Sent to every page, and to a new one while nobody answered.
    """

    #: known to pages alone, so that who asked can't answer
    id: str
    act: Act
    #: what the assistant calls itself, which nobody checks; may be empty
    assistant: Annotated[str, Meta(max_length=80)]
    #: of the notebook's kernel; empty of a lab
    kernel_id: str = ""
    #: the cell in the notebook; None is the one that ran last
    cell_id: str | None = None
    #: the name of the change
    change: Annotated[str, Meta(max_length=80)] = ""
    #: the lab's title
    lab: Annotated[str, Meta(max_length=200)] = ""
    #: of a lab the source that is checked or handed in
    source: str = ""


class ActClosed(Struct, frozen=True, tag="act_closed"):
    """Nobody waits for an answer to a request any more: it was given, or is late."""

    id: str


class Alerts(Struct, frozen=True, tag="alerts"):
    """All alerts that hold or ended lately; after each hello and when one changes.

    Sent to every connected page, also one that is hidden and takes no frames.
    """

    time_ms: float
    alerts: tuple[Alert, ...]


ServerMessage = (
    Hello
    | Devices
    | Frame
    | Gap
    | Event
    | Error
    | CellReport
    | Verdicts
    | Health
    | Holders
    | Outlook
    | PostMortem
    | Receipt
    | Alerts
    | Keeping
    | ActRequest
    | ActClosed
)


class CellBand(Struct, frozen=True, forbid_unknown_fields=True):
    """A cell that a page saw run: the body of `POST .../api/v1/cells`."""

    #: the same for every page that saw it: of the kernel's message
    id: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,100}$")]
    kernel_id: Annotated[str, Meta(pattern="^[A-Za-z0-9-]{0,64}$")]
    notebook: Annotated[str, Meta(max_length=1000)]
    cell_id: Annotated[str, Meta(max_length=100)] | None
    execution_count: int | None
    #: first line of the cell
    title: Annotated[str, Meta(max_length=200)]
    #: Unix ms of the server's clock
    started_ms: float
    #: None while it runs
    ended_ms: float | None
    status: Literal["running", "ok", "error", "interrupted"]


class RecordList(Struct, frozen=True):
    """Answer of `GET .../api/v1/records`: what was found, the newest first."""

    records: tuple[KeptRecord, ...]
    #: whether older ones match, too: ask again with `before_ms` of the last
    has_more: bool


class SpanView(Struct, frozen=True):
    """One device over a span, as it is shown."""

    device: str
    #: what matters most
    figures: tuple[LabelledFigure, ...]
    #: how much of it readings cover; empty where that is all of it
    coverage: str


class SpanStatistics(Struct, frozen=True):
    """Answer of `GET .../api/v1/history/span?from_ms=&to_ms=`: all devices."""

    from_ms: float
    to_ms: float
    devices: tuple[DeviceSpan, ...]
    #: in words, if the history does not hold all of the span
    note: str
    #: of the devices that are there; a kernel is given none
    views: tuple[SpanView, ...] = ()


class DetailColumn(Struct, frozen=True):
    """One metric in equal steps; None where a step has no reading."""

    least: tuple[float | None, ...]
    mean: tuple[float | None, ...]
    most: tuple[float | None, ...]


class Detail(Struct, frozen=True):
    """Answer of `GET .../api/v1/history/detail`: one device, as many steps as asked."""

    device: str
    from_ms: float
    step_ms: float
    #: by metric name
    columns: dict[str, DetailColumn]


class Capabilities(Struct, frozen=True):
    """Answer of `GET <base_url>/warpbook/api/v1/capabilities`."""

    protocol: int
    version: str
    #: the rates that a subscription may have
    min_rate_hz: float
    max_rate_hz: float
    history_seconds: float
    devices: tuple[Device, ...]
    absences: tuple[Absence, ...]
    replay: Replay | None
    #: version of the Bokeh whose BokehJS this server serves, if it has one
    bokeh: str | None
    #: where the server runs; a kernel on another one offers its own
    machine: Machine


class StateNow(Struct, frozen=True):
    """Answer of `GET .../api/v1/state` and of the ingest: the newest frame."""

    protocol: int
    version: str
    devices: tuple[Device, ...]
    absences: tuple[Absence, ...]
    replay: Replay | None
    frame: Frame | None
    #: by device id, over the last seconds; empty until there are some
    verdicts: dict[str, Verdict] = {}
    #: by device id: who holds memory now
    holders: dict[str, DeviceHolders] = {}
    #: by device id; empty until there are some
    outlook: dict[str, MemoryOutlook] = {}
