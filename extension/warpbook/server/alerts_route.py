"""Who asks for the alerts: `GET api/v1/alerts`, and Prometheus."""

from __future__ import annotations

from collections.abc import Iterable

from jupyter_server.auth.decorator import authorized
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from tornado import web

from warpbook.server.alerts import Alerting
from warpbook.server.page_request import Request
from warpbook.server.parameters import NoQuery
from warpbook.server.selection import encode


class AlertsHandler(Request):
    """`GET api/v1/alerts`.

    Cost: what was judged last is told again.
    """

    query_type = NoQuery

    def initialize(self, alerting: Alerting) -> None:
        """Take what the application shares."""
        self._alerting = alerting

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Tell the alerts as they were judged last; nothing is read for it."""
        self.finish_json(encode(self._alerting.told()))


class AlertsCollector(Collector):
    """Gives the alerts that hold to Prometheus."""

    def __init__(self, alerting: Alerting) -> None:
        """Read from `alerting` at each scrape."""
        self._alerting = alerting

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing: several servers of one process register beside one another."""
        return []

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Give 1 for each rule and device of which an alert holds."""
        family = GaugeMetricFamily(
            "warpbook_alert_active",
            "An alert of this rule holds.",
            labels=("rule", "severity", "uuid"),
        )
        for rule, severity, device in sorted(set(self._alerting.severities())):
            family.add_metric((rule, severity, device.partition(":")[2]), 1)
        yield family
