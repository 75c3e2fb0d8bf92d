"""Who holds the GPUs as Prometheus metrics, bounded and with names made plain."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from warpbook_monitors.holders.shares import GpuShare, Holder, HolderShare

#: of all GPUs together; beyond it those that came last have no series
MOST_SERIES = 256
_MOST_TOTALS = 512
_LABELS = ("uuid", "uid", "account", "hub_user", "workload")
#: what names of accounts, units and pods consist of
_ODD = re.compile(r"[^A-Za-z0-9_.@:+-]")
_MOST_LABEL = 64


class HolderCollector(Collector):
    """Gives the newest interval, and each holder's energy since the agent started."""

    def __init__(self) -> None:
        self._gpus: tuple[GpuShare, ...] = ()
        #: of holders, in joules; the newest last
        self._energy: OrderedDict[tuple[str, ...], float] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, gpus: tuple[GpuShare, ...]) -> None:
        with self._lock:
            self._gpus = gpus
            for gpu in gpus:
                for share in gpu.holders:
                    if share.energy_mj is not None:
                        key = _labels(gpu.gpu, share.holder)
                        joules = self._energy.pop(key, 0.0) + share.energy_mj / 1000
                        self._energy[key] = joules
            while len(self._energy) > _MOST_TOTALS:
                self._energy.popitem(last=False)

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry must not collect when this is registered."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Give every family; what is not known has no sample."""
        with self._lock:
            gpus, energy = self._gpus, dict(self._energy)
        processes = _gauge("processes", "Processes of a holder on a GPU.")
        memory = _gauge("memory_bytes", "Device memory that a holder has.")
        busy = _gauge(
            "busy_ratio", "Share of the last interval in which its kernels ran."
        )
        joules = CounterMetricFamily(
            "warpbook_gpu_holder_energy_joules",
            "Energy charged to a holder since the agent started.",
            labels=_LABELS,
        )
        shown: dict[tuple[str, ...], HolderShare] = {}
        for gpu in gpus:
            for share in gpu.holders:
                if share.is_there and len(shown) < MOST_SERIES:
                    shown.setdefault(_labels(gpu.gpu, share.holder), share)
        for key, share in shown.items():
            processes.add_metric(key, share.processes)
            if share.memory_bytes is not None:
                memory.add_metric(key, share.memory_bytes)
            if share.busy_ms is not None and share.held_ms:
                busy.add_metric(key, share.busy_ms / share.held_ms)
            if key in energy:
                joules.add_metric(key, energy[key])
        return processes, memory, busy, joules


def _gauge(name: str, meaning: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"warpbook_gpu_holder_{name}", meaning, labels=_LABELS)


def _labels(uuid: str, holder: Holder) -> tuple[str, ...]:
    workload = holder.workload
    return (
        _plain(uuid),
        "" if holder.uid is None else str(holder.uid),
        _plain(holder.account),
        _plain(holder.hub_user),
        _plain(f"{workload.kind}:{workload.name}" if workload.kind else ""),
    )


def _plain(name: str) -> str:
    return _ODD.sub("_", name)[:_MOST_LABEL]
