"""XID and ECC events: told while somebody watches, in words, and never in a spin."""

import queue
import time
from collections.abc import Callable, Iterator

import pytest

from tests.stub_nvml import (
    DOUBLE_BIT_EVENT,
    FUNCTION_NOT_FOUND,
    LOST,
    NO_PERMISSION,
    RETIREMENT_EVENT,
    SINGLE_BIT_EVENT,
    XID_EVENT,
    StubNvml,
)
from warpbook_monitors.frames import Event, Frame
from warpbook_monitors.nvml import events as nvml_events
from warpbook_monitors.nvml.probe import NvmlSource
from warpbook_monitors.nvml.xid import explain
from warpbook_monitors.sampling.sampler import Message, Sampler

MakeStub = Callable[..., StubNvml]


class Told:
    """What a sampler of the stub's GPUs tells."""

    def __init__(self) -> None:
        self.sampler = Sampler([NvmlSource()], rate_hz=20)
        self._messages: queue.Queue[Message] = queue.Queue()
        self.sampler.listen(self._messages.put)
        self.sampler.open()

    def next(self, kind: type[Message]) -> Message:
        while not isinstance(message := self._messages.get(timeout=60), kind):
            pass
        return message


@pytest.fixture
def heard(stub: StubNvml) -> Iterator[Told]:
    messages = Told()
    yield messages
    messages.sampler.close()
    assert stub.event_sets == 0


@pytest.fixture
def stub(make_stub_nvml: MakeStub) -> StubNvml:
    stub = make_stub_nvml("h200", "h200")
    stub.no_delays()
    return stub


def wait_until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_an_xid_is_told_with_what_to_do(stub: StubNvml, heard: Told) -> None:
    with heard.sampler.watch("test"):
        heard.next(Frame)
        stub.ring(1, XID_EVENT, 79)
        event = heard.next(Event)
    assert event == Event(
        time_ms=event.time_ms,
        device=heard.sampler.devices[1].id,
        kind="xid",
        code=79,
        severity="fault",
        title=explain(79).title,
        meaning=explain(79).meaning,
        remedy=explain(79).remedy,
    )
    assert abs(event.time_ms - time.time() * 1000) < 60_000


def test_a_gpu_that_fell_off_the_bus_has_no_reading_whatever_nvml_says(
    stub: StubNvml, heard: Told
) -> None:
    """The stub answers as before, as a driver may that has not noticed."""
    with heard.sampler.watch("test"):
        for code in (13, 48, 95, 119, 79):
            heard.next(Frame)
            assert [reading.state for reading in heard.next(Frame).readings] == [
                "ok",
                "ok",
            ]
            stub.ring(1, XID_EVENT, code)
            assert heard.next(Event).code == code
        heard.next(Frame)
        other, gone = heard.next(Frame).readings
    assert other.state == "ok"
    assert gone.state == "lost" and not gone.values
    assert gone.why == f"XID 79: {explain(79).title}. Reboot the machine."


@pytest.mark.parametrize(
    ("nvml_type", "kind", "severity"),
    [
        (SINGLE_BIT_EVENT, "ecc_single_bit", "normal"),
        (DOUBLE_BIT_EVENT, "ecc_double_bit", "fault"),
        (RETIREMENT_EVENT, "page_retirement", "warning"),
    ],
)
def test_memory_errors_are_told(
    stub: StubNvml, heard: Told, nvml_type: int, kind: str, severity: str
) -> None:
    with heard.sampler.watch("test"):
        stub.ring(0, nvml_type)
        event = heard.next(Event)
    assert (event.kind, event.severity, event.code) == (kind, severity, None)
    assert event.remedy


def test_the_driver_is_waited_for_only_while_somebody_watches(
    stub: StubNvml, heard: Told
) -> None:
    assert stub.calls("nvmlEventSetWait_v2") == 0
    with heard.sampler.watch("test"):
        wait_until(lambda: stub.event_sets == 1)
    wait_until(lambda: stub.event_sets == 0)
    waits = stub.calls("nvmlEventSetWait_v2")
    time.sleep(0.1)
    assert stub.calls("nvmlEventSetWait_v2") == waits
    with heard.sampler.watch("test"):
        stub.ring(0, XID_EVENT, 31)
        assert heard.next(Event).code == 31


def test_a_storm_is_told_once(
    stub: StubNvml, heard: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a busy machine may hear them within more than the usual second
    monkeypatch.setattr(nvml_events, "REPEAT_S", 60.0)
    with heard.sampler.watch("test"):
        for _ in range(10):
            stub.ring(0, XID_EVENT, 13)
        stub.ring(0, XID_EVENT, 43)
        assert [heard.next(Event).code for _ in range(2)] == [13, 43]


def test_a_lost_gpu_makes_no_spin(stub: StubNvml, heard: Told) -> None:
    with heard.sampler.watch("test"):
        wait_until(lambda: stub.event_sets == 1)
        stub.set(1, rc=LOST)
        wait_until(lambda: stub.event_sets == 0)
        waits = stub.calls("nvmlEventSetWait_v2")
        time.sleep(0.3)
        assert stub.calls("nvmlEventSetWait_v2") == waits


def test_the_other_gpus_are_heard_again_after_one_was_lost(
    stub: StubNvml, heard: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml_events, "RETRY_S", 0.1)
    with heard.sampler.watch("test"):
        wait_until(lambda: stub.event_sets == 1)
        freed = stub.calls("nvmlEventSetFree")
        stub.set(1, rc=LOST)
        wait_until(lambda: stub.calls("nvmlEventSetFree") > freed)
        stub.ring(0, XID_EVENT, 48)
        assert heard.next(Event).code == 48


@pytest.mark.parametrize(
    ("function", "code", "reason"),
    [
        ("nvmlDeviceGetSupportedEventTypes", FUNCTION_NOT_FOUND, "not_supported"),
        ("nvmlEventSetCreate", FUNCTION_NOT_FOUND, "not_supported"),
        ("nvmlDeviceRegisterEvents", NO_PERMISSION, "no_permission"),
    ],
)
def test_a_driver_without_events_is_an_absence(
    stub: StubNvml, function: str, code: int, reason: str
) -> None:
    stub.fault(function, rc=code)
    listener = Told()
    absences = {absence.what: absence.reason for absence in listener.sampler.absences}
    assert absences == {
        f"Errors reported by GPU {gpu} itself (XID, ECC)": reason for gpu in (0, 1)
    }
    with listener.sampler.watch("test"):
        listener.next(Frame)
        time.sleep(0.2)
    assert stub.calls("nvmlEventSetWait_v2") == 0
    listener.sampler.close()


def test_each_number_that_matters_is_explained() -> None:
    numbers = (13, 31, 32, 38, 43, 45, 48, *range(61, 65), 68, 69, 74, 79, 92, 94, 95)
    for number in (*numbers, 109, 110, *range(119, 123), 140, 143, 149, 154):
        words = explain(number)
        assert words.title and words.meaning and words.remedy
        assert "unknown to warpbook" not in words.title, number
    assert "999" in explain(999).meaning
    assert "unknown to warpbook" in explain(999).title
