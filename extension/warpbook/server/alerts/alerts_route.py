"""Who asks for the alerts and their rules, by `api/v1/alerts`, and Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec
from jupyter_server.auth.decorator import authorized
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from tornado import web

from warpbook.alert_rules_protocol import AlertRuleChange
from warpbook.server.alerts.alerts import Alerting
from warpbook.server.alerts.rules_file import RulesConflict, rules_now
from warpbook.server.stream.selection import encode
from warpbook.server.web.page_request import Request
from warpbook.server.web.parameters import BadBody, read_json
from warpbook_monitors.errors import RulesError
from warpbook_monitors.plain_text import bounded

MAX_CHANGE_BYTES = 16 * 1024
_CHANGE = msgspec.json.Decoder(AlertRuleChange)


class AlertsHandler(Request):
    """`GET api/v1/alerts`.

    Cost: what was judged last is told again.
    """

    _alerting: Alerting

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Tell the alerts as they were judged last; nothing is read for it."""
        self.finish_json(encode(self._alerting.alerts()))


class AlertRulesHandler(Request):
    """`GET` and `POST api/v1/alerts/rules`.

    Cost: a file of at most 256 KiB is read, for a change also written.
    """

    _alerting: Alerting

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Tell every rule as it holds."""
        file = self._alerting.rules_file
        self.finish_json(encode(await asyncio.to_thread(rules_now, file)))

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Add, change or take out one rule; what would be refused is not written."""
        body = self.request.body
        if len(body) > MAX_CHANGE_BYTES:
            raise web.HTTPError(413, f"A rule may have {MAX_CHANGE_BYTES} bytes.")
        try:
            change = read_json(body, _CHANGE)
            rules = await self._alerting.change_rule(change)
        except BadBody as error:
            raise web.HTTPError(400, f"No change of a rule: {error}") from None
        except RulesError as error:
            raise web.HTTPError(
                400, bounded(f"Not saved: {error.reason}.", 400)
            ) from None
        except RulesConflict as error:
            raise web.HTTPError(409, str(error)) from None
        self.finish_json(encode(rules))


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
