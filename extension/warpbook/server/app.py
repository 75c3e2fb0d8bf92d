"""The Jupyter server extension: builds the parts and gives them their routes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from jupyter_core.paths import jupyter_config_dir
from jupyter_server.extension.application import ExtensionApp
from jupyter_server.serverapp import ServerApp
from prometheus_client import REGISTRY
from traitlets import Bool, Enum, Float, Int, Unicode

from warpbook.guarded_server import GuardedServer
from warpbook.server.alerts.alerts import Alerting
from warpbook.server.alerts.alerts_route import AlertsCollector
from warpbook.server.assistants.mcp_route import Assistants
from warpbook.server.cells.receipts import Receipts
from warpbook.server.consent.acts import Acts
from warpbook.server.ingest.ingest import Ingest
from warpbook.server.ingest.ingest_handler import IngestParts
from warpbook.server.memory.attribution import Attribution
from warpbook.server.memory.holder_watch import HolderWatch
from warpbook.server.memory.outlook import OutlookWatch
from warpbook.server.memory.post_mortem import PostMortems
from warpbook.server.past.history import Past
from warpbook.server.records.records import Records, keep_telling
from warpbook.server.records.reports import Reports
from warpbook.server.records.timelines import MAX_MEGABYTES, Timelines
from warpbook.server.reports.trace_files import TraceFiles
from warpbook.server.routes import RouteParts, routes
from warpbook.server.stream.broadcast import Broadcaster
from warpbook.server.stream.kernel_watch import KernelWatch
from warpbook.server.stream.kernels import running_kernels, runs_code, runs_kernel
from warpbook.server.web.credentials import Credentials, give_each_kernel
from warpbook.server.web.logs import write_json_lines
from warpbook.server.web.page_request import (
    ARCHIVE_S,
    READINESS,
    Readiness,
    bounded_stop,
    end_at_the_latest,
)
from warpbook_monitors.alerts.rules import FILE_NAME
from warpbook_monitors.archive.archive import Archive
from warpbook_monitors.archive.limits import DAY_MS, Limits
from warpbook_monitors.archive.place import default_folder
from warpbook_monitors.exposition.prometheus import SCRAPE_WATCH_S, SamplerCollector
from warpbook_monitors.history.history import MAX_BYTES, History
from warpbook_monitors.open_sources import (
    SHIPPED_RECORDING,
    live_sources,
    replay_sources,
)
from warpbook_monitors.sampling.backoff import MOST_CPU_RATIO
from warpbook_monitors.sampling.own_cost import Costs, OwnCostSource
from warpbook_monitors.sampling.sampler import BASE_RATE_HZ, Sampler


class WarpbookApp(ExtensionApp):
    """A GPU lab inside JupyterLab."""

    name = "warpbook"
    description = "Streams what the GPUs do, and keeps cell reports."

    rate_hz = Float(
        BASE_RATE_HZ,
        min=1.0,
        max=10.0,
        help="How often the devices are read while somebody watches, per second. "
        "A GPM window is at least 100 ms, so more than 10 would show nothing new.",
    ).tag(config=True)
    max_sampler_cpu_ratio = Float(
        MOST_CPU_RATIO,
        min=0.001,
        max=1.0,
        help="Of one CPU core, for reading all devices: beyond it they are read "
        "less often, and every view says so.",
    ).tag(config=True)
    history_seconds = Float(
        3600.0,
        min=10.0,
        max=24 * 3600.0,
        help="How much of the stream is kept, at full resolution, for views that are "
        "opened or come back later.",
    ).tag(config=True)
    history_megabytes = Int(
        MAX_BYTES >> 20,
        min=1,
        max=16_384,
        help="Where the stream takes more (an hour of eight GPUs takes about 25), less "
        "time of it is kept.",
    ).tag(config=True)
    timelines_megabytes = Int(
        MAX_MEGABYTES,
        min=1,
        max=65_536,
        help="For all events of the newest cell reports, to zoom into; the oldest are "
        "dropped first. A million events take about 45.",
    ).tag(config=True)
    trace_megabytes = Int(
        1024,
        min=1,
        max=65_536,
        help="A trace file that is opened in JupyterLab is refused if it is larger "
        "on disk.",
    ).tag(config=True)
    trace_seconds = Float(
        120.0,
        min=1.0,
        max=3600.0,
        help="To read and analyse a trace file that somebody opens; a process that "
        "takes longer is ended.",
    ).tag(config=True)
    archive = Bool(
        True,
        help="Keep what was read and what happened on disk, for days: see "
        "archive_folder, archive_days, archive_full_hours and archive_megabytes.",
    ).tag(config=True)
    keep_watching = Bool(
        False,
        help="Read the devices although nobody looks, so that the night is in the "
        "archive in the morning.",
    ).tag(config=True)
    archive_folder = Unicode(
        "",
        help="Where it is kept; a folder for each machine in warpbook's folder of data "
        "if left out. It must be on a disk of this machine: network disks lose files "
        "of this kind.",
    ).tag(config=True)
    archive_days = Float(
        30.0,
        min=1.0,
        max=3660.0,
        help="For so long seconds, reports, receipts, cells and alerts are kept.",
    ).tag(config=True)
    archive_full_hours = Float(
        24.0, min=1.0, max=24 * 3660.0, help="For so long each reading is kept."
    ).tag(config=True)
    archive_megabytes = Int(
        4096,
        min=64,
        max=1_048_576,
        help="On disk, for all of it; the oldest is removed first.",
    ).tag(config=True)
    max_viewers = Int(
        256, min=1, max=10_000, help="Connections to the stream at a time."
    ).tag(config=True)
    replay_file = Unicode(
        "",
        help="Play this recording in the place of this machine's GPUs. Without it, "
        "the recording that ships with warpbook is played where there is no GPU.",
    ).tag(config=True)
    prometheus = Bool(
        True,
        help="Give the GPUs on Jupyter's own /metrics; they are read for two and a "
        "half minutes after each scrape.",
    ).tag(config=True)
    dcgm_aliases = Bool(
        False,
        help="Give the GPUs on /metrics under the names of NVIDIA's dcgm-exporter as "
        "well, for boards and alert rules that were written for it.",
    ).tag(config=True)
    other_users = Enum(
        ["sum", "names"],
        "sum",
        help="What is shown of other users who hold memory on a GPU: only how much all "
        "of them hold together, or each process with its name and user.",
    ).tag(config=True)
    alerts = Enum(
        ["connected", "watched", "always"],
        "connected",
        help="When devices are read for the sake of the alert rules, once a second: "
        "while a page is open, even a hidden one; only as long as somebody watches "
        "anyway; or always.",
    ).tag(config=True)
    alert_rules = Unicode(
        "",
        help="A file of alert rules in TOML; warpbook-alerts.toml in Jupyter's folder "
        "of configuration if left out.",
    ).tag(config=True)
    jupyter_ai_tools = Bool(
        False,
        help="Give the tools for assistants to Jupyter AI, too, where "
        "jupyter-server-mcp is installed. That package listens on loopback without a "
        "password: everybody on this machine can then ask what an assistant may.",
    ).tag(config=True)
    json_logs = Bool(
        False,
        help="Write what warpbook logs as JSON lines, those of requests with their id "
        "and route.",
    ).tag(config=True)
    open_dashboard = Bool(False, help="Open the dashboard when JupyterLab starts.").tag(
        config=True
    )

    def initialize_settings(self) -> None:
        """Build the parts; no device is looked for before somebody asks."""
        if self.json_logs:
            write_json_lines()
        GuardedServer.be_the_default()
        self._readiness = Readiness()
        costs = Costs()
        sources = (
            replay_sources(Path(self.replay_file))
            if self.replay_file
            else live_sources()
        )
        sampler = Sampler(
            [*sources, OwnCostSource(costs)],
            self.rate_hz,
            costs,
            self.max_sampler_cpu_ratio,
            stand_in=None if self.replay_file else SHIPPED_RECORDING,
        )
        history = History(
            self.history_seconds, self.rate_hz, self.history_megabytes << 20
        )
        self._records = Records(self._make_archive())
        self._reports = Reports(self._records)
        self._timelines = Timelines(
            self._reports, self.timelines_megabytes << 20, self._records
        )
        self._trace_files = TraceFiles(
            self._reports,
            self._timelines,
            self.trace_megabytes << 20,
            self.trace_seconds,
        )
        self._broadcaster = Broadcaster(sampler, history, costs)
        demand = self._broadcaster.demand
        self._broadcaster.attach(self._reports)
        self._acts = Acts(self._broadcaster.viewers, partial(runs_code, self.serverapp))
        self._broadcaster.attach(self._acts)
        self._past = Past(self._broadcaster, self._records.archive)
        self._holders = HolderWatch(
            self._broadcaster,
            partial(running_kernels, self.serverapp),
            Attribution(self.other_users == "names", os.environ.get("JUPYTERHUB_USER")),
            costs,
        )
        archive = self._records.archive
        if archive is not None:
            self._readiness.add("archive", lambda: archive.problem)
        if self.serverapp is not None:
            loop = self.serverapp.io_loop
            keep_telling(self._broadcaster, archive, loop.add_callback)
            if self.keep_watching:
                loop.add_callback(demand.lease("keep_watching").begin)
        OutlookWatch(self._broadcaster, lambda: self._holders.newest)
        post_mortems = PostMortems(self._broadcaster, self._holders, self._records)
        self._receipts = Receipts(self._past, self._holders, self._records)
        self._kernel_watch = KernelWatch(
            self._broadcaster,
            partial(running_kernels, self.serverapp),
            partial(runs_code, self.serverapp),
        )
        self._credentials = Credentials(partial(runs_kernel, self.serverapp))
        self._ingest = Ingest(
            IngestParts(
                self._broadcaster,
                self._reports,
                post_mortems,
                self._receipts,
                self._kernel_watch,
                self._past,
                self._timelines,
                self._readiness,
                self._credentials,
            )
        )
        self._ingest.start()
        if self.serverapp is not None:
            manager = self.serverapp.kernel_manager
            give_each_kernel(manager, self._ingest.environment)
        self._alerting = Alerting(
            self._broadcaster,
            Path(self.alert_rules or Path(jupyter_config_dir(), FILE_NAME)),
            self.alerts,
            lambda: self._holders.newest,
            self._records,
        )
        for keeper in (self._reports, self._receipts, post_mortems, self._alerting):
            self._records.on_start(partial(self._load, keeper.load))
        if self.serverapp is not None:
            self.serverapp.io_loop.add_callback(self._records.start)
            self.serverapp.io_loop.add_callback(self._alerting.start)
        self._alerts_collector = AlertsCollector(self._alerting)
        self._collector = SamplerCollector(
            sampler,
            partial(demand.lease("Prometheus").begin_for, SCRAPE_WATCH_S),
            self.dcgm_aliases,
        )
        if self.prometheus:
            REGISTRY.register(self._collector)
            REGISTRY.register(self._alerts_collector)
        if self.serverapp is not None:
            settings = self.serverapp.web_app.settings
            page_config = settings.setdefault("page_config_data", {})
            # Jupyter's own is written with a ~
            page_config["warpbookRoot"] = os.path.abspath(self.serverapp.root_dir)
            page_config["warpbookTraceBytes"] = str(self.trace_megabytes << 20)
            if self.open_dashboard:
                page_config["warpbookOpenDashboard"] = "true"

    def _make_archive(self) -> Archive | None:
        """Name the archive; its thread opens the file later."""
        if not self.archive:
            return None
        size_bytes = self.archive_megabytes << 20
        limits = Limits(
            frames_ms=self.archive_full_hours * 3_600_000,
            summaries_ms=self.archive_days * DAY_MS,
            size_bytes=size_bytes,
            records_bytes=size_bytes // 8,
            timelines_bytes=size_bytes // 8,
        )
        return Archive(Path(self.archive_folder or default_folder()), limits)

    async def _load(self, load: Callable[[], Awaitable[list[bytes]]]) -> None:
        """Have what is kept from before loaded, and tell pages that are here."""
        for encoded in await load():
            self._broadcaster.viewers.send_everyone(encoded)

    def initialize_handlers(self) -> None:
        """Put the routes below `<base_url>/warpbook/`."""
        if self.serverapp is not None:
            self.serverapp.web_app.settings[READINESS] = self._readiness
        self._assistants = Assistants()
        if self.jupyter_ai_tools and self.serverapp is not None:
            self._offer_to_jupyter_ai(self.serverapp)
        parts = RouteParts(
            self._broadcaster,
            self._past,
            self._reports,
            self._records,
            self._receipts,
            self._timelines,
            self._trace_files,
            self._alerting,
            self._holders,
            self._acts,
            self._readiness,
            self._assistants,
        )
        self.handlers += routes(parts, self.max_viewers)

    def _offer_to_jupyter_ai(self, app: ServerApp) -> None:
        """Have the tools for assistants found by an entry point."""
        from warpbook.mcp.marked import Own
        from warpbook.server.assistants import jupyter_ai
        from warpbook.server.assistants.server_source import ServerParts, ServerSource
        from warpbook.server.reports.trace_route import found_file

        parts = ServerParts(
            self._broadcaster,
            self._past,
            self._reports,
            self._records,
            self._receipts,
            self._trace_files,
        )
        find = partial(found_file, app.contents_manager)
        name = Own("the Jupyter server")
        jupyter_ai.offer(ServerSource(parts, find, app.base_url, name))

    async def stop_extension(self) -> None:
        """Take no new work, finish what is in flight, and stop; whatever hangs."""
        self._readiness.is_draining = True
        if getattr(self.serverapp, "_stopping", False):
            end_at_the_latest()
        if self.prometheus:
            REGISTRY.unregister(self._collector)
            REGISTRY.unregister(self._alerts_collector)
        self._alerting.stop()
        self._kernel_watch.close()
        await asyncio.gather(
            bounded_stop("requests of kernels", self._ingest.drain()),
            bounded_stop("assistants", self._assistants.close()),
            bounded_stop("holders", self._holders.close()),
            bounded_stop("devices", self._broadcaster.close()),
        )
        self._ingest.stop()
        await bounded_stop("archive", self._records.close(), ARCHIVE_S)
