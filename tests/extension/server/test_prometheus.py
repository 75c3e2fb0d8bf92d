"""The GPUs on Jupyter's own /metrics, as Prometheus reads them."""

import asyncio
import re
import time
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.promtool import assert_answered, board_expressions, check_metrics
from tests.stub_nvml import LOST, UNKNOWN, XID_EVENT, StubNvml

#: the expressions of the board that dcgm-exporter ships, with its variables filled in
DCGM_BOARD = [
    "max(DCGM_FI_DEV_GPU_TEMP{SELECT}) by (Hostname, gpu, uuid)",
    "avg(DCGM_FI_DEV_GPU_TEMP{SELECT})",
    "max(DCGM_FI_DEV_POWER_USAGE{SELECT}) by (Hostname, gpu, uuid)",
    "sum(max(DCGM_FI_DEV_POWER_USAGE{SELECT}) by (gpu))",
    "max(DCGM_FI_DEV_SM_CLOCK{SELECT} * 1000000) by (Hostname, UUID, gpu)",
    "max(DCGM_FI_PROF_GR_ENGINE_ACTIVE{SELECT}) "
    "by (Hostname, gpu, GPU_I_ID, GPU_I_PROFILE)",
    "max(DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{SELECT}) "
    "by (Hostname, gpu, GPU_I_ID, GPU_I_PROFILE)",
    "max(DCGM_FI_DEV_FB_USED{SELECT}) by (Hostname, gpu, GPU_I_ID, GPU_I_PROFILE)",
]


@pytest.fixture
def stub(make_stub_nvml) -> StubNvml:
    return make_stub_nvml("h200", "a100")


@pytest.fixture
def text(jp_fetch):
    """Our part of the page, as it is sent; what others tell is theirs."""

    async def text() -> str:
        lines = (await jp_fetch("metrics")).body.decode().splitlines(keepends=True)
        ours = re.compile(r"(# (HELP|TYPE) )?(warpbook|DCGM)_")
        return "".join(line for line in lines if ours.match(line))

    return text


@pytest.fixture
def scrape(text):
    async def scrape() -> dict[str, list]:
        return parsed(await text())

    return scrape


def parsed(text: str) -> dict[str, list]:
    families = text_string_to_metric_families(text)
    return {f.name: f.samples for f in families if f.name.startswith("warpbook_")}


@pytest.fixture
def awake(text):
    """Scrape until the sampler has what a window of GPM and a second of cost need.

    Of both GPUs: on a busy machine one may be stale for a moment.
    """
    wanted = {"warpbook_gpu_sm_active_ratio", "warpbook_monitor_sampler_cpu_ratio"}

    async def awake() -> str:
        for _ in range(300):
            families = parsed(page := await text())
            both = len(families.get("warpbook_gpu_power_watts", ())) == 2
            if wanted <= set(families) and both:
                return page
            await asyncio.sleep(0.1)
        raise AssertionError(f"only {sorted(families)}")

    return awake


async def test_the_first_scrape_says_that_it_only_woke_the_sampler(scrape) -> None:
    families = await scrape()
    assert families["warpbook_last_collect_success"][0].value == 0
    assert "warpbook_gpu_power_watts" not in families


async def test_values_come_in_base_units_by_uuid(awake, stub) -> None:
    stub.set(0, power_mw=123_000, sm_clock_mhz=1500)
    stub.set_gpm(0, SM_UTIL=42.0)
    families = parsed(await awake())
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


async def test_a_frame_from_before_the_clock_was_set_back_is_not_fresh(
    awake, scrape, monkeypatch
) -> None:
    await awake()
    an_hour_before = SimpleNamespace(time=lambda: time.time() - 3600)
    monkeypatch.setattr("warpbook_monitors.exposition.prometheus.time", an_hour_before)
    families = await scrape()
    assert families["warpbook_last_collect_success"][0].value == 0
    assert "warpbook_gpu_power_watts" not in families


async def test_gpus_of_which_nothing_is_read_are_no_success(
    awake, scrape, stub
) -> None:
    await awake()
    for at in range(2):
        stub.set(at, rc=UNKNOWN)
    for _ in range(300):
        families = await scrape()
        if families["warpbook_last_collect_success"][0].value == 0:
            # the host is read all the same
            assert families["warpbook_host_memory_used_bytes"]
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"a success: {sorted(families)}")


async def test_a_lost_gpu_has_no_series_any_more(awake, scrape, stub) -> None:
    await awake()
    stub.set(0, rc=LOST)
    for _ in range(300):
        uuids = {
            s.labels["uuid"]
            for s in (await scrape()).get("warpbook_gpu_power_watts", [])
        }
        if len(uuids) == 1:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the lost GPU is told for ever")


async def test_prometheus_own_checker_finds_nothing_wrong(awake) -> None:
    check_metrics(await awake())


async def test_every_expression_of_our_board_has_an_answer(awake) -> None:
    page = await awake()
    expressions = board_expressions()
    # a GPU without MIG has no instances, and of holders agents tell
    whole = [
        expression
        for expression in expressions
        if not re.search("warpbook_(mig|gpu_holder)_", expression)
    ]
    assert len(whole) > 15
    assert len(expressions) - len(whole) == 6
    assert_answered(whole, page)


class TestDcgmAliases:
    @pytest.fixture
    def warpbook_config(self) -> dict:
        return {"dcgm_aliases": True}

    async def test_the_board_of_dcgm_exporter_has_its_answers(self, awake) -> None:
        page = await awake()
        # a label of DCGM's own that the checker does not like
        check_metrics(page.replace("modelName=", "model_name="))
        select = 'Hostname=~".*", gpu=~"0|1"'
        board = [expression.replace("SELECT", select) for expression in DCGM_BOARD]
        assert_answered([*board, "DCGM_FI_DEV_FB_FREE{Hostname!=''}"], page)

    async def test_units_and_labels_are_those_of_dcgm(
        self, awake, stub: StubNvml
    ) -> None:
        stub.set(0, power_mw=123_000, sm_clock_mhz=1500, utilization_percent=40)
        stub.set(0, memory_used_bytes=5 << 30, energy_mj=7_000_000)
        stub.set_gpm(0, ANY_TENSOR_UTIL=25.0)
        samples = {
            sample.name: sample
            for family in text_string_to_metric_families(await awake())
            for sample in family.samples
            if sample.labels.get("gpu") == "0"
        }
        values = {name: sample.value for name, sample in samples.items()}
        assert values["DCGM_FI_DEV_POWER_USAGE"] == 123
        assert values["DCGM_FI_DEV_SM_CLOCK"] == 1500
        assert values["DCGM_FI_DEV_GPU_UTIL"] == 40
        assert values["DCGM_FI_DEV_FB_USED"] == 5 * 1024
        assert values["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"] == 7_000_000
        assert values["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"] == pytest.approx(0.25)
        labels = samples["DCGM_FI_DEV_POWER_USAGE"].labels
        assert labels["UUID"].startswith("GPU-")
        assert labels["device"] == "nvidia0"
        assert labels["modelName"] == "NVIDIA H200"
        assert labels["Hostname"] and labels["DCGM_FI_DRIVER_VERSION"]


class TestMig:
    @pytest.fixture
    def stub(self, make_stub_nvml) -> StubNvml:
        stub = make_stub_nvml("h200", "h200")
        stub.set(1, mig=1)
        stub.make_instance(1, 0, slices=1, SM_UTIL=25)
        stub.make_instance(1, 1, slices=2, SM_UTIL=75)
        return stub

    @pytest.fixture
    def warpbook_config(self) -> dict:
        return {"dcgm_aliases": True}

    async def test_instances_have_families_of_their_own(
        self, text, stub: StubNvml
    ) -> None:
        for _ in range(300):
            families = parsed(page := await text())
            if len(families.get("warpbook_mig_sm_active_ratio", ())) == 2:
                break
            await asyncio.sleep(0.1)
        active = families["warpbook_mig_sm_active_ratio"]
        assert sorted(sample.value for sample in active) == [0.25, 0.75]
        info = {s.labels["index"]: s.labels for s in families["warpbook_gpu_info"]}
        gpus = {labels["uuid"] for labels in info.values()}
        for sample in active:
            assert sample.labels["uuid"].startswith("MIG-")
            assert sample.labels["gpu_uuid"] == info["1"]["uuid"]
        whole = {s.labels["uuid"] for s in families["warpbook_gpu_memory_used_bytes"]}
        assert whole <= gpus, "a sum over GPUs must count nothing twice"
        check_metrics(page.replace("modelName=", "model_name="))
        parts = [our for our in board_expressions() if "warpbook_mig_" in our]
        by_part = "count(DCGM_FI_PROF_SM_ACTIVE{GPU_I_ID=~'7|8', gpu='1'}) == 2"
        profile = "DCGM_FI_PROF_SM_ACTIVE{GPU_I_PROFILE=~'1g.*'}"
        assert_answered([*parts, by_part, profile], page)


async def test_xid_errors_are_counted_by_number(awake, scrape, stub: StubNvml) -> None:
    await awake()
    for number in (1, 2):
        stub.ring(1, XID_EVENT, 94)
        counted: list[tuple[str, float]] = []
        while counted != [("94", number)]:
            families = await scrape()
            samples = families.get("warpbook_gpu_xid_errors", ())
            counted = [(sample.labels["xid"], sample.value) for sample in samples]
            assert not counted or counted[0][1] <= number
        # the same event in one second is told once
        await asyncio.sleep(1.2)
    uuids = {s.labels["uuid"] for s in families["warpbook_gpu_info"]}
    assert families["warpbook_gpu_xid_errors"][0].labels["uuid"] in uuids


async def test_there_are_no_aliases_unless_asked_for(awake) -> None:
    assert "DCGM" not in await awake()


class TestReplay:
    @pytest.fixture
    def stub(self) -> None:
        """No GPU: the shipped recording is played."""

    async def test_a_replay_is_never_told_as_a_machine(self, scrape) -> None:
        families = await scrape()
        while "warpbook_host_cpu_ratio" not in families:
            await asyncio.sleep(0.1)
            families = await scrape()
        assert families["warpbook_last_collect_success"][0].value == 1
        gpus = [s for f, s in families.items() if f.startswith("warpbook_gpu") and s]
        assert gpus == []
