"""The GPUs on Jupyter's own /metrics, as Prometheus reads them."""

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.stub_nvml import LOST, StubNvml


@pytest.fixture
def stub(make_stub_nvml) -> StubNvml:
    return make_stub_nvml("h200", "a100")


@pytest.fixture
def jp_server_config(stub, jp_server_config) -> dict:
    """The server starts on the stub's GPUs."""
    return jp_server_config


@pytest.fixture
def scrape(jp_fetch):
    async def scrape() -> dict[str, list]:
        text = (await jp_fetch("metrics")).body.decode()
        families = text_string_to_metric_families(text)
        return {f.name: f.samples for f in families if f.name.startswith("warpbook_")}

    return scrape


async def awake(scrape) -> dict[str, list]:
    """Scrape until the sampler has what a window of GPM needs."""
    for _ in range(50):
        families = await scrape()
        if "warpbook_gpu_sm_active_ratio" in families:
            return families
        await asyncio.sleep(0.1)
    raise AssertionError(f"only {sorted(families)}")


async def test_the_first_scrape_says_that_it_only_woke_the_sampler(scrape) -> None:
    families = await scrape()
    assert families["warpbook_last_collect_success"][0].value == 0
    assert "warpbook_gpu_power_watts" not in families


async def test_values_come_in_base_units_by_uuid(scrape, stub) -> None:
    stub.set(0, power_mw=123_000, sm_clock_mhz=1500)
    stub.set_gpm(0, SM_UTIL=42.0)
    families = await awake(scrape)
    assert families["warpbook_last_collect_success"][0].value == 1
    info = {s.labels["index"]: s.labels for s in families["warpbook_gpu_info"]}
    first, second = info["0"]["uuid"], info["1"]["uuid"]
    assert info["0"]["name"] == "NVIDIA H200"

    def value(name: str, uuid: str) -> float | None:
        samples = [s.value for s in families[name] if s.labels["uuid"] == uuid]
        return samples[0] if samples else None

    assert value("warpbook_gpu_power_watts", first) == 123
    assert value("warpbook_gpu_sm_clock_hertz", first) == 1.5e9
    assert value("warpbook_gpu_sm_active_ratio", first) == pytest.approx(0.42)
    assert value("warpbook_gpu_sm_active_ratio", second) is None, "no GPM, no zero"
    assert value("warpbook_gpu_power_watts", second) > 0
    assert families["warpbook_host_memory_used_bytes"][0].value > 0


async def test_a_lost_gpu_has_no_series_any_more(scrape, stub) -> None:
    await awake(scrape)
    stub.set(0, rc=LOST)
    for _ in range(50):
        uuids = {
            s.labels["uuid"]
            for s in (await scrape()).get("warpbook_gpu_power_watts", [])
        }
        if len(uuids) == 1:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the lost GPU is told for ever")


class TestReplay:
    @pytest.fixture
    def stub(self) -> None:
        """No GPU: the shipped recording is played."""

    async def test_a_replay_is_never_told_as_a_machine(self, scrape) -> None:
        for _ in range(10):
            families = await scrape()
            await asyncio.sleep(0.1)
        assert families["warpbook_last_collect_success"][0].value == 1
        gpus = [s for f, s in families.items() if f.startswith("warpbook_gpu") and s]
        assert gpus == []
        assert "warpbook_host_cpu_ratio" in families
