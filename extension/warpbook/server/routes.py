"""The routes below `<base_url>/warpbook/`, and what each of them is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jupyter_server.base.handlers import AuthenticatedFileHandler

from warpbook.server.alerts.alerts import Alerting
from warpbook.server.alerts.alerts_route import AlertRulesHandler, AlertsHandler
from warpbook.server.assistants.mcp_route import Assistants, McpHandler
from warpbook.server.assistants.server_source import ServerParts
from warpbook.server.cells.receipts import Receipts
from warpbook.server.cells.record_routes import (
    KIND,
    CellsHandler,
    ReceiptHandler,
    RecordHandler,
    RecordsHandler,
)
from warpbook.server.consent.acts import Acts
from warpbook.server.labs.labs_routes import (
    LAB,
    CoursesHandler,
    LabCardsHandler,
    LabHintsHandler,
    LabOpenHandler,
    LabsHandler,
    LabSolutionHandler,
    QuizBeginHandler,
    QuizHandler,
    QuizMarkHandler,
)
from warpbook.server.memory.holder_watch import HoldersHandler, HolderWatch
from warpbook.server.past.history import Past
from warpbook.server.past.history_route import (
    DetailHandler,
    ExportHandler,
    HistoryFigureHandler,
    SpanHandler,
)
from warpbook.server.records.records import Records
from warpbook.server.records.reports import Reports
from warpbook.server.records.rest import CapabilitiesHandler, StateHandler
from warpbook.server.records.timelines import Timelines
from warpbook.server.reports.report_figures import ReportFigureHandler
from warpbook.server.reports.report_routes import (
    ChecklistHandler,
    DifferenceHandler,
    ReportPageHandler,
)
from warpbook.server.reports.timeline_routes import (
    EventHandler,
    SearchHandler,
    StatisticsHandler,
    TraceHandler,
    WindowHandler,
)
from warpbook.server.reports.trace_files import TraceFiles
from warpbook.server.reports.trace_route import TraceFileHandler, TraceProgressHandler
from warpbook.server.stream.broadcast import Broadcaster
from warpbook.server.stream_socket import StreamHandler
from warpbook.server.web.bokehjs import bokehjs_folder
from warpbook.server.web.health_routes import HealthHandler, ReadyHandler
from warpbook.server.web.page_request import Readiness

API = "/warpbook/api/v1"
_REPORT = f"{API}/reports/([A-Za-z0-9-]{{1,64}})"


@dataclass(frozen=True)
class RouteParts:
    """The parts of the application that routes use."""

    broadcaster: Broadcaster
    past: Past
    reports: Reports
    records: Records
    receipts: Receipts
    timelines: Timelines
    trace_files: TraceFiles
    alerting: Alerting
    holders: HolderWatch
    acts: Acts
    readiness: Readiness
    assistants: Assistants


def routes(parts: RouteParts, max_viewers: int) -> list[tuple[str, type, Any]]:
    """Pattern, handler and its arguments, for each route."""
    shared = {"broadcaster": parts.broadcaster, "reports": parts.reports}
    past = {**shared, "past": parts.past}
    timelines = {**shared, "timelines": parts.timelines}
    records = {**shared, "records": parts.records, "receipts": parts.receipts}
    probe = {"readiness": parts.readiness}
    stream = {"past": parts.past, "acts": parts.acts, "max_viewers": max_viewers}
    trace_files = {**shared, "trace_files": parts.trace_files}
    assistants = {
        **shared,
        "assistants": parts.assistants,
        "acts": parts.acts,
        "parts": ServerParts(
            parts.broadcaster,
            parts.past,
            parts.reports,
            parts.records,
            parts.receipts,
            parts.trace_files,
        ),
    }
    table: list[tuple[str, type, Any]] = [
        (f"{API}/health", HealthHandler, probe),
        (f"{API}/ready", ReadyHandler, probe),
        (f"{API}/stream", StreamHandler, stream),
        (f"{API}/capabilities", CapabilitiesHandler, shared),
        (f"{API}/state", StateHandler, shared),
        (f"{API}/alerts", AlertsHandler, {"alerting": parts.alerting}),
        (f"{API}/alerts/rules", AlertRulesHandler, {"alerting": parts.alerting}),
        (f"{API}/holders", HoldersHandler, {**shared, "holders": parts.holders}),
        (f"{API}/history/figure", HistoryFigureHandler, past),
        (f"{API}/history/span", SpanHandler, past),
        (f"{API}/history/detail", DetailHandler, past),
        (f"{API}/history/export", ExportHandler, past),
        (f"{API}/receipt", ReceiptHandler, {**shared, "receipts": parts.receipts}),
        (f"{API}/trace", TraceFileHandler, trace_files),
        (f"{API}/trace/progress", TraceProgressHandler, trace_files),
        (f"{API}/mcp", McpHandler, assistants),
        (f"{API}/records", RecordsHandler, records),
        (f"{API}/records/{KIND}/(.{{1,1000}})", RecordHandler, records),
        (f"{API}/cells", CellsHandler, records),
        (f"{API}/courses", CoursesHandler, shared),
        (f"{API}/labs", LabsHandler, shared),
        (f"{API}/labs/{LAB}/open", LabOpenHandler, shared),
        (f"{API}/labs/{LAB}/hints", LabHintsHandler, shared),
        (f"{API}/labs/{LAB}/cards", LabCardsHandler, shared),
        (f"{API}/labs/{LAB}/solution", LabSolutionHandler, shared),
        (f"{API}/quizzes/placement/begin", QuizBeginHandler, shared),
        (f"{API}/quizzes/{LAB}", QuizHandler, shared),
        (f"{API}/quizzes/{LAB}/mark", QuizMarkHandler, shared),
        (f"{_REPORT}/figure", ReportFigureHandler, past),
        (f"{_REPORT}/difference", DifferenceHandler, past),
        (f"{_REPORT}/checklist", ChecklistHandler, shared),
        (f"{_REPORT}/page", ReportPageHandler, shared),
        (f"{_REPORT}/timeline", WindowHandler, timelines),
        (f"{_REPORT}/timeline/statistics", StatisticsHandler, timelines),
        (f"{_REPORT}/timeline/search", SearchHandler, timelines),
        (f"{_REPORT}/timeline/event", EventHandler, timelines),
        (f"{_REPORT}/timeline/export", TraceHandler, timelines),
    ]
    if (folder := bokehjs_folder()) is not None:
        served = {"path": str(folder)}
        name = r"/warpbook/bokehjs/(bokeh[a-z-]*\.min\.js)"
        table.append((name, AuthenticatedFileHandler, served))
    return table
