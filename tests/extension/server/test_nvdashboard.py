"""jupyterlab-nvdashboard's routes, as its front end speaks to them."""

import asyncio
import json
import os
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from tornado.httpclient import HTTPClientError

from tests.programs import ROOT, environment, free_port, running, wait_for
from tests.stub_nvml import LOST, NO_PERMISSION, NOT_SUPPORTED, StubNvml
from warpbook.server.nvdashboard_charts import HostBytes, Now
from warpbook_monitors.frames import Device, Frame, Metric, Reading

CHARTS = {
    "gpu_utilization": {"gpu_utilization"},
    "gpu_usage": {"memory_usage", "total_memory"},
    "gpu_resource": {
        "time",
        "gpu_utilization_total",
        "gpu_memory_total",
        "rx_total",
        "tx_total",
        "gpu_memory_individual",
        "gpu_utilization_individual",
    },
    "pci_stats": {"pci_tx", "pci_rx", "max_rxtx_tp"},
    "nvlink_throughput": {"nvlink_rx", "nvlink_tx", "max_rxtx_bw"},
    "cpu_resource": {
        "time",
        "cpu_utilization",
        "memory_usage",
        "disk_read",
        "disk_write",
        "network_read",
        "network_write",
    },
}


@pytest.fixture
def stub(make_stub_nvml) -> StubNvml:
    return make_stub_nvml("h200", "h200")


@pytest.fixture
def warpbook_config(stub) -> dict:
    return {"nvdashboard_routes": True}


class Chart:
    """One chart of the peer's front end."""

    def __init__(self, socket) -> None:
        self.socket = socket

    async def receive(self) -> dict:
        message = await asyncio.wait_for(self.socket.read_message(), 60)
        assert message is not None, f"closed with {self.socket.close_code}"
        return json.loads(message)

    async def say(self, period: object, paused: object = False) -> None:
        text = json.dumps({"updateFrequency": period, "isPaused": paused})
        await self.socket.write_message(text)

    async def until(self, key: str, wanted) -> dict:
        """The first sample of which a key is as wanted."""
        for _ in range(200):
            sample = await self.receive()
            if wanted(sample.get(key)):
                return sample
        raise AssertionError(f"{key} is {sample.get(key)}")


@pytest.fixture
def show(jp_ws_fetch):
    """Open a chart as the front end does."""
    opened = []

    async def show(chart: str, period: int = 100) -> Chart:
        opened.append(Chart(await jp_ws_fetch("nvdashboard", chart)))
        assert await opened[-1].receive() == {"status": "connected"}
        await opened[-1].say(period)
        return opened[-1]

    yield show
    for chart in opened:
        chart.socket.close()


@pytest.mark.parametrize("chart", CHARTS)
async def test_each_chart_gets_the_keys_that_it_reads(show, chart: str) -> None:
    sample = await (await show(chart)).receive()
    assert set(sample) == CHARTS[chart]
    for values in sample.values():
        assert not isinstance(values, list) or len(values) == 2


async def test_the_values_are_those_of_the_gpus(show, stub: StubNvml) -> None:
    stub.set(0, utilization_percent=40, memory_used_bytes=3 << 30)
    stub.set(1, utilization_percent=20, memory_used_bytes=1 << 30)
    used = await (await show("gpu_usage")).until(
        "memory_usage", lambda values: values == [3 << 30, 1 << 30]
    )
    assert used["total_memory"][0] > 100 << 30
    resource = await (await show("gpu_resource")).until(
        "gpu_utilization_individual", lambda values: values == [40, 20]
    )
    assert resource["gpu_utilization_total"] == 30
    share = 100 * (4 << 30) / sum(used["total_memory"])
    assert resource["gpu_memory_total"] == pytest.approx(share, abs=0.01)


async def test_a_gpu_that_hides_its_memory_bends_no_share(show, stub: StubNvml) -> None:
    stub.set(0, memory_used_bytes=70 << 30)
    chart = await show("gpu_resource")
    await chart.receive()
    for name in ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2"):
        stub.fault(name, rc=NO_PERMISSION, gpu=1)
    resource = await chart.until(
        "gpu_memory_individual", lambda values: values == [70 << 30, None]
    )
    usage = await (await show("gpu_usage")).until(
        "total_memory", lambda values: values[0] is not None
    )
    total = usage["total_memory"][0]
    share = 100 * (70 << 30) / total
    assert resource["gpu_memory_total"] == pytest.approx(share, abs=0.01)


def test_traffic_is_not_made_up_for_a_time_that_nobody_watched() -> None:
    metric = Metric("disk_read_bytes_per_s", "bytes_per_s", "Disk read")
    host = Device("host", "host", "host", None, "live", (metric,))
    counted = HostBytes()
    for time_ms in (1e12, 1e12 + 1000, 1e12 + 3.6e6, 1e12 + 3.601e6, 1e12):
        frame = Frame(0, time_ms, (Reading(0, "ok", (500.0,)),))
        counted.add(Now(frame, [host]))
    assert counted.total["disk_read"] == 1000


@pytest.mark.parametrize("period", [100, 1000])
async def test_links_are_told_in_bytes_per_second_at_every_rate(
    show, stub: StubNvml, period: int
) -> None:
    stub.set_gpm(0, NVLINK_TOTAL_RX_PER_SEC=18 * 1024, PCIE_TX_PER_SEC=512)
    link = await show("nvlink_throughput", period)
    sample = await link.until("nvlink_rx", lambda values: values[0] is not None)
    assert sample["nvlink_rx"][0] == pytest.approx(18 * 2**30, rel=0.01)
    # 18 links of 25 GB/s in each direction
    assert sample["max_rxtx_bw"] == 450e9
    pcie = await show("pci_stats", period)
    sample = await pcie.until("pci_tx", lambda values: values[0] is not None)
    assert sample["pci_tx"][0] == pytest.approx(512 * 2**20, rel=0.01)
    # generation 5, 16 lanes
    assert sample["max_rxtx_tp"] == pytest.approx(63e9, rel=0.01)


async def test_what_is_not_known_is_null_and_the_others_go_on(
    show, stub: StubNvml
) -> None:
    stub.fault("nvmlDeviceGetUtilizationRates", rc=NOT_SUPPORTED, gpu=0)
    stub.set(1, utilization_percent=20)
    chart = await show("gpu_resource")
    sample = await chart.until(
        "gpu_utilization_individual", lambda values: values == [None, 20]
    )
    assert sample["gpu_utilization_total"] == 20
    stub.set(1, rc=LOST)
    sample = await chart.until(
        "gpu_memory_individual", lambda values: values[1] is None
    )
    assert sample["gpu_memory_individual"][0] is not None
    assert sample["gpu_utilization_total"] is None


async def test_any_number_of_charts_reads_the_devices_once(
    show, stub: StubNvml, calls_at_rest
) -> None:
    async def calls(seconds: float = 3.0) -> float:
        before, begin_s = stub.calls("nvmlDeviceGetPowerUsage"), time.monotonic()
        await asyncio.sleep(seconds)
        done = stub.calls("nvmlDeviceGetPowerUsage") - before
        return done / (time.monotonic() - begin_s)

    charts = [await show("gpu_resource")]
    assert await calls() > 0
    for _ in range(4):
        charts += [await show(chart) for chart in CHARTS]
    # two GPUs, ten times a second
    assert await calls() < 1.3 * 20
    for chart in charts:
        await chart.say(100, paused=True)
    await calls_at_rest()
    assert await calls(1.0) == 0, "all are paused, and it reads"


async def test_a_pause_stops_the_samples_and_the_rest_begins_again(show) -> None:
    chart = await show("cpu_resource")
    await chart.receive()
    await chart.say(100, paused=True)
    with pytest.raises(asyncio.TimeoutError):
        while True:
            await asyncio.wait_for(chart.socket.read_message(), 1)


async def test_a_period_of_a_millisecond_is_bounded_by_the_servers_rate(show) -> None:
    chart = await show("cpu_resource", period=1)
    times = [(await chart.receive())["time"] for _ in range(30)]
    # but for a first one that was late
    assert (times[-1] - times[0]) / 29 > 80


@pytest.mark.parametrize(
    "message",
    [
        '{"message": "Client connected"}',
        '{"updateFrequency": 0, "isPaused": false}',
        '{"updateFrequency": -5, "isPaused": false}',
        '{"updateFrequency": "soon", "isPaused": false}',
        '{"updateFrequency": 1e999, "isPaused": false}',
        '{"updateFrequency": 100, "isPaused": "no"}',
        "[]",
        "not JSON",
        b"\xff\xfe",
    ],
)
async def test_hostile_messages_are_answered_and_the_chart_goes_on(
    show, message: str | bytes
) -> None:
    chart = await show("cpu_resource")
    await chart.socket.write_message(message, binary=isinstance(message, bytes))
    await chart.until("error", lambda error: error)
    assert "cpu_utilization" in await chart.receive()


async def test_who_goes_on_sending_garbage_is_closed(show) -> None:
    chart = await show("cpu_resource")
    for _ in range(10):
        await chart.socket.write_message("garbage")
    while await chart.socket.read_message() is not None:
        pass
    assert chart.socket.close_code == 4002


@pytest.mark.parametrize("chart", CHARTS)
async def test_a_stranger_is_refused_before_the_upgrade(
    jp_ws_fetch, chart: str
) -> None:
    with pytest.raises(HTTPClientError) as refusal:
        await jp_ws_fetch("nvdashboard", chart, headers={"Authorization": ""})
    assert refusal.value.code == 403


async def test_what_a_kernel_could_load_is_told_without_importing_it(jp_fetch) -> None:
    answer = json.loads((await jp_fetch("nvdashboard", "accelerators", "check")).body)
    assert (answer["has_gpu"], answer["ngpus"]) == (True, 2)
    assert set(answer["accelerators"]) == {"cudf-pandas", "cuml-accel"}
    assert answer["accelerators"]["cudf-pandas"] == {
        "available": False,
        "version": None,
    }
    assert "cudf" not in sys.modules


class TestOffByDefault:
    @pytest.fixture
    def warpbook_config(self, stub) -> dict:
        return {}

    async def test_there_are_no_such_routes(self, jp_ws_fetch) -> None:
        with pytest.raises(HTTPClientError) as refusal:
            await jp_ws_fetch("nvdashboard", "cpu_resource")
        assert refusal.value.code == 404


class TestReplay:
    @pytest.fixture
    def stub(self) -> None:
        """No GPU: the shipped recording is played."""

    async def test_a_replay_is_no_gpu_and_the_host_is_told(
        self, show, jp_fetch, jp_ws_fetch
    ) -> None:
        answer = json.loads(
            (await jp_fetch("nvdashboard", "accelerators", "check")).body
        )
        assert answer["has_gpu"] is False
        with pytest.raises(HTTPClientError) as refusal:
            await jp_ws_fetch("nvdashboard", "gpu_usage")
        assert refusal.value.code == 404
        chart = await show("cpu_resource")
        used = await chart.until("memory_usage", lambda used: used is not None)
        assert used["memory_usage"] > 0


def test_where_the_peers_own_server_part_is_enabled_ours_steps_back(
    tmp_path: Path, make_stub_nvml
) -> None:
    stub = make_stub_nvml("h200")
    peer = ROOT / ".cache" / "nvdashboard"
    assert peer.exists(), f"there is no {peer}: run `make setup-test`"
    port, log = free_port(), tmp_path / "log"
    command = [
        *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
        f"--port={port}",
        f"--ServerApp.root_dir={tmp_path}",
        "--IdentityProvider.token=secret",
        "--WarpbookApp.nvdashboard_routes=True",
        "--ServerApp.jpserver_extensions={'warpbook': True, "
        "'jupyterlab_nvdashboard': True}",
    ]
    env = environment(
        HOME=str(tmp_path),
        PYTHONPATH=os.pathsep.join([*paths(), str(peer)]),
        **stub.env,
    )
    with running(command, env, log):

        def answer_now() -> bytes | None:
            address = f"http://127.0.0.1:{port}/nvdashboard/accelerators/check"
            request = urllib.request.Request(f"{address}?token=secret")
            try:
                return urllib.request.urlopen(request, timeout=20).read()
            except OSError:
                return None

        # only the peer's own answer counts GPUs before anybody watches
        assert json.loads(wait_for("the server", answer_now))["ngpus"] == 1
        assert "disable jupyterlab_nvdashboard" in log.read_text()


def paths() -> list[str]:
    return [str(ROOT / folder) for folder in ("extension", "labs", "monitors")]
