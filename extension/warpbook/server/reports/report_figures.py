"""`GET api/v1/reports/<id>/figure?kind=`: the pictures of one cell report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from jupyter_server.auth.decorator import authorized
from tornado import web

from warpbook.protocol import CellReport, Device
from warpbook.server.past.history_route import PastHandler
from warpbook.server.web.parameters import Figure
from warpbook_monitors.history.seconds import SECOND_MS

if TYPE_CHECKING:
    from bokeh.model import Model

#: of GPUs that are drawn below one another
_MOST_GPUS = 8


class ReportFigure(Figure, frozen=True):
    """The query of a report's figure."""

    kind: Literal["timeline", "roofline", "memory", "telemetry"] = "timeline"


class ReportFigureHandler(PastHandler):
    """Draws the timeline, the roofline, memory over time, or the GPUs' telemetry.

    Cost: what the report holds, which is bounded where it comes in; of telemetry what
    is held of its span, for at most eight GPUs. One figure at a time.
    """

    query_type = ReportFigure

    @web.authenticated
    @authorized
    async def get(self, report_id: str) -> None:
        """Draw the kind that is asked for."""
        report = await self.kept_report(report_id)
        query = self.query(ReportFigure)
        kind = query.kind
        if kind == "telemetry":
            await self._broadcaster.ready()
            make = self._telemetry(report)
        else:
            make = _of_profile(report, kind)

        def draw(theme: str) -> str:
            # bokeh must not be imported on the event loop
            from warpbook.figures.item import figure_item, link_time

            figure = make()
            if kind != "roofline":
                link_time(figure, report.id)
            return figure_item(figure, theme)

        await self.finish_figure(draw, query.theme)

    def _telemetry(self, report: CellReport) -> Callable[[], Model]:
        devices = self._gpus_of(report)
        start_ms, end_ms = report.started_ms, report.ended_ms
        # a reading stands for the time before it
        read = self._past.reader(start_ms, end_ms + SECOND_MS, devices)
        replay = self._broadcaster.sampler.replay

        def make() -> Model:
            from warpbook.figures.axis import Window, axis_figure

            past = read()
            return axis_figure(
                tuple(devices.values()),
                {device.id: past[at] for at, device in devices.items()},
                Window(start_ms, end_ms),
                replay.name if replay else None,
            )

        return make

    def _gpus_of(self, report: CellReport) -> dict[int, Device]:
        """Find the GPUs that worked, or the recorded ones that stand in for any."""
        wanted = {f"{kind}:{uuid}" for uuid in report.gpus for kind in ("gpu", "mig")}
        gpus = {
            at: device
            for at, device in enumerate(self._broadcaster.devices)
            if device.id in wanted
            or (device.origin == "replay" and device.kind in ("gpu", "mig"))
        }
        return dict(list(gpus.items())[:_MOST_GPUS])


def _of_profile(report: CellReport, kind: str) -> Callable[[], Model]:
    def make() -> Model:
        from warpbook.figures.memory import memory_figure
        from warpbook.figures.roofline import roofline_figure
        from warpbook.figures.timeline import timeline

        if kind == "roofline":
            return roofline_figure(report.profile)
        if kind == "memory":
            return memory_figure(report.profile)
        return timeline(report.profile, report.title)

    return make
