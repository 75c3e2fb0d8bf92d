"""Alerts of a real server on the stub library, for a page that takes no frames."""

import asyncio
import json

import pytest

from tests.stub_nvml import DOUBLE_BIT_EVENT, LOST, XID_EVENT, StubNvml


@pytest.fixture
def stub(make_stub_nvml) -> StubNvml:
    return make_stub_nvml("h200", "a100")


@pytest.fixture(autouse=True)
def impatient(monkeypatch) -> None:
    """Look at the rules file sooner than in earnest."""
    monkeypatch.setattr("warpbook.server.alerts.alerts.REREAD_S", 0.5)


@pytest.fixture
def rules(tmp_path):
    """The rules file of this server; short waits, so that tests need not wait."""
    path = tmp_path / "rules.toml"
    path.write_text(QUICK)
    return path


@pytest.fixture
def warpbook_config(rules) -> dict:
    return {"alert_rules": str(rules)}


QUICK = """
[built_in.temperature]
for_s = 0
clear_s = 0
[built_in.memory_full]
for_s = 0
[built_in.gpu_lost]
for_s = 0
clear_s = 0
[built_in.throttling]
for_s = 1
[built_in.monitor]
for_s = 0
clear_s = 0
"""


async def alert(client, rule: str, ended: bool = False) -> dict:
    """Wait until an alert of a rule holds, or has ended."""
    while True:
        for known in getattr(client, "alerts", ()):
            if known["rule"] == rule and (known["until_ms"] is not None) == ended:
                return known
        client.alerts = (await asyncio.wait_for(client.next("alerts"), 60))["alerts"]


def device(hello: dict, index: int) -> str:
    return next(d["id"] for d in hello["devices"] if d["index"] == index)


async def test_a_page_that_takes_no_frames_is_told_when_an_alert_begins_and_ends(
    connect, stub
) -> None:
    client = await connect()
    hello = await client.next("hello")
    assert (await client.next("alerts"))["alerts"] == []
    stub.set(0, temperature_celsius=99)
    hot = await alert(client, "temperature")
    assert (hot["device"], hot["severity"]) == (device(hello, 0), "warning")
    assert hot["title"] == "GPU 0 is hot"
    assert "Check fans" in hot["text"]
    stub.set(0, temperature_celsius=40)
    over = await alert(client, "temperature", ended=True)
    assert over["id"] == hot["id"]
    assert over["since_ms"] == hot["since_ms"] <= over["until_ms"]


async def test_memory_throttling_and_a_lost_gpu_are_told_each_by_its_gpu(
    connect, stub
) -> None:
    client = await connect()
    hello = await client.next("hello")
    total = hello["devices"][0]["facts"]["memory_total_bytes"]
    stub.set(0, memory_used_bytes=total * 97 // 100)
    full = await alert(client, "memory_full")
    assert full["device"] == device(hello, 0)
    stub.set(0, clocks_event_reasons=0x40 | 0x04)
    slow = await alert(client, "throttling")
    assert (slow["severity"], slow["title"]) == (
        "fault",
        "GPU 0: hardware thermal slowdown",
    )
    stub.set(1, rc=LOST)
    lost = await alert(client, "gpu_lost")
    assert (lost["device"], lost["severity"]) == (device(hello, 1), "fault")


async def test_an_xid_and_an_uncorrectable_error_are_faults_with_what_to_do(
    connect, stub
) -> None:
    client = await connect()
    hello = await client.next("hello")
    # an event is heard once the devices are being read
    while stub.event_sets == 0:
        await asyncio.sleep(0.05)
    stub.ring(1, XID_EVENT, 79)
    lost = await alert(client, "xid")
    assert (lost["device"], lost["severity"]) == (device(hello, 1), "fault")
    assert lost["title"].startswith("GPU 1, XID 79: ")
    assert "reboot" in lost["text"]
    stub.ring(0, DOUBLE_BIT_EVENT)
    memory = await alert(client, "ecc_uncorrected")
    assert (memory["device"], memory["severity"]) == (device(hello, 0), "fault")
    assert "checkpoint" in memory["text"]


async def test_a_kernel_that_holds_a_gpu_for_nothing_is_named_busy_or_idle(
    connect, stub, rules, jp_fetch, jp_ws_fetch, jp_serverapp
) -> None:
    rules.write_text(
        "[built_in.held_idle]\nfor_s = 0\nclear_s = 0\nminutes = 0.01\n"
        "[built_in.idle_while_busy]\nfor_s = 1\nclear_s = 0\n"
    )
    wanted = {"path": "train.ipynb", "name": "", "type": "notebook"}
    wanted |= {"kernel": {"name": "python3"}}
    answer = await jp_fetch("api", "sessions", method="POST", body=json.dumps(wanted))
    kernel_id = json.loads(answer.body)["kernel"]["id"]
    kernel = await jp_ws_fetch("api", "kernels", kernel_id, "channels")
    pid = jp_serverapp.kernel_manager.get_kernel(kernel_id).provisioner.pid
    stub.set(0, utilization_percent=0)
    stub.set_gpm(0, SM_UTIL=0.0)
    stub.hold(0, (pid, 8 << 30))

    client = await connect()
    held = await alert(client, "held_idle")
    assert held["kernel_id"] == kernel_id
    assert "train.ipynb holds 8.0 GiB" in held["text"]
    header = {"msg_id": "1", "msg_type": "execute_request", "version": "5.3"}
    header |= {"username": "", "session": "1", "date": "2026-01-01T00:00:00Z"}
    content = {"code": "import time; time.sleep(600)", "silent": False}
    message = {"header": header, "content": content, "channel": "shell"}
    await kernel.write_message(
        json.dumps({**message, "parent_header": {}, "metadata": {}})
    )
    await alert(client, "held_idle", ended=True)
    waits = await alert(client, "idle_while_busy")
    assert waits["kernel_id"] == kernel_id
    assert waits["title"] == "GPU 0 idle while a cell runs"
    stub.set_gpm(0, SM_UTIL=50.0)
    await alert(client, "idle_while_busy", ended=True)
    kernel.close()


async def test_who_comes_later_is_told_what_holds(connect, stub, jp_fetch) -> None:
    stub.set(0, temperature_celsius=99)
    first = await connect()
    hot = await alert(first, "temperature")
    later = await connect()
    # a busy machine may have told of more
    ids = {known["id"] for known in (await later.next("alerts"))["alerts"]}
    assert hot["id"] in ids
    answer = await jp_fetch("warpbook", "api", "v1", "alerts")
    answered = json.loads(answer.body)
    assert hot["id"] in {known["id"] for known in answered["alerts"]}
    page = (await jp_fetch("metrics")).body.decode()
    uuid = hot["device"].removeprefix("gpu:")
    assert (
        f'warpbook_alert_active{{rule="temperature",severity="warning",uuid="{uuid}"}}'
        " 1.0" in page
    )


async def test_a_bad_rules_file_is_told_with_its_place_until_it_is_mended(
    connect, stub, rules
) -> None:
    client = await connect()
    await client.next("hello")
    rules.write_text(QUICK + "[built_in.throttling]\n")
    raised = await alert(client, "monitor")
    assert raised["title"] == "The alert rules are refused"
    assert str(rules) in raised["text"]
    assert "line" in raised["text"]
    # JupyterLab shows no more than 140 letters: the mistake comes before the path
    assert raised["text"].index("line") < raised["text"].index(str(rules))
    stub.set(0, temperature_celsius=99)
    await alert(client, "temperature")
    heading = "[built_in.temperature]\n"
    rules.write_text(QUICK.replace(heading, f"{heading}enabled = false\n"))
    await alert(client, "monitor", ended=True)
    await alert(client, "temperature", ended=True)


async def test_a_rule_of_ones_own_holds_from_the_moment_it_is_saved(
    connect, stub, rules
) -> None:
    # before the first reading, which would be of another power
    stub.set(0, power_mw=99_000)
    stub.set(1, power_mw=123_000)
    client = await connect()
    await client.next("hello")
    rules.write_text(
        '[own.hungry]\nmetric = "power_watts"\nabove = 120\nclear = 100\nfor_s = 0\n'
        'severity = "fault"\ntitle = "Much power"\ntext = "Look at it."\n'
    )
    raised = await alert(client, "hungry")
    assert (raised["severity"], raised["title"]) == ("fault", "GPU 1: Much power")


async def test_nothing_is_read_when_the_last_page_is_gone(
    connect, stub, calls_at_rest
) -> None:
    client = await connect()
    await client.next("hello")
    stub.set(0, temperature_celsius=99)
    await alert(client, "temperature")
    client.socket.close()
    calls = await calls_at_rest()
    await asyncio.sleep(1.5)
    assert stub.calls() == calls


async def test_for_a_hidden_page_devices_are_read_once_a_second(connect, stub) -> None:
    client = await connect()
    hello = await client.next("hello")
    stub.set(0, temperature_celsius=99)
    await alert(client, "temperature")
    stub.set(0, temperature_celsius=40)
    await alert(client, "temperature", ended=True)
    await client.subscribe(since_ms=hello["time_ms"])
    hidden = [await client.next("frame") for _ in range(2)]
    assert hidden[1]["seq"] - hidden[0]["seq"] >= 10
    seqs = [(await client.next("frame"))["seq"] for _ in range(20)]
    assert min(b - a for a, b in zip(seqs, seqs[1:], strict=False)) == 1


async def calls_grow(stub) -> None:
    """Wait until NVML is being called over and over."""
    for _ in range(2):
        before = stub.calls("nvmlDeviceGetTemperature")
        while stub.calls("nvmlDeviceGetTemperature") == before:
            await asyncio.sleep(0.05)


async def test_a_rules_file_may_have_the_gpus_watched_without_any_page(
    stub, rules, jp_fetch, jp_serverapp
) -> None:
    rules.write_text(f"always = true\n{QUICK}")
    stub.set(0, temperature_celsius=99)
    await asyncio.wait_for(calls_grow(stub), 60)
    rules_now: set[str] = set()
    while "temperature" not in rules_now:
        answer = await jp_fetch("warpbook", "api", "v1", "alerts")
        rules_now = {known["rule"] for known in json.loads(answer.body)["alerts"]}


async def test_a_monitor_that_has_gone_silent_says_so(
    connect, stub, jp_serverapp
) -> None:
    client = await connect()
    stub.set(0, temperature_celsius=99)
    await alert(client, "temperature")
    (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    await asyncio.to_thread(app._broadcaster.sampler.close)
    raised = await alert(client, "monitor")
    assert raised["title"] == "The monitor gives no readings"
