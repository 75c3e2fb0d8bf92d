"""The sampler on sources that hang, vanish and change, as real ones do."""

import threading
import time
from dataclasses import dataclass, field

import msgspec
import pytest

from warpbook_monitors.errors import DeviceLost, Unavailable
from warpbook_monitors.frames import Device, Devices, Frame, Gap, Metric
from warpbook_monitors.sampling.sampler import Message, Sampler
from warpbook_monitors.source import Discovery


@dataclass
class Thing:
    """A device whose behaviour a test changes while it is read."""

    id: str
    what: str = "A thing"
    value: float | None = 0.5
    lost: bool = False
    broken: bool = False
    hang: threading.Event = field(default_factory=threading.Event)
    reads: int = 0
    rests: int = 0
    device: Device = field(init=False)

    def __post_init__(self) -> None:
        metric = Metric("sm_active_ratio", "ratio", "SM active")
        self.device = Device(self.id, "gpu", "A thing", 0, "live", (metric,))
        self.hang.set()

    def read(self, now_ns: int) -> tuple[float | None, ...]:
        self.reads += 1
        self.hang.wait(250)
        if self.lost:
            raise DeviceLost("It fell off the bus.")
        if self.broken:
            raise ZeroDivisionError("a defect")
        return (self.value,)

    def rest(self) -> None:
        self.rests += 1

    def open(self) -> Discovery:
        return Discovery([self])

    def close(self) -> None:
        pass


class Nothing:
    what = "NVML"

    def open(self) -> Discovery:
        raise Unavailable("NVML", "no_library", "No driver.", "Install one.")

    def close(self) -> None:
        pass


class Stream:
    """Collects what a sampler publishes."""

    def __init__(self, sampler: Sampler) -> None:
        self.messages: list[Message] = []
        self._new = threading.Condition()
        sampler.listen(self._take)

    def _take(self, message: Message) -> None:
        with self._new:
            self.messages.append(message)
            self._new.notify_all()

    def wait(self, wanted, timeout_s: float = 60) -> Message:
        """The first message from now on that is wanted."""
        with self._new:
            start = len(self.messages)
            messages: list[Message] = []

            def look() -> bool:
                messages[:] = [m for m in self.messages[start:] if wanted(m)]
                return bool(messages)

            assert self._new.wait_for(look, timeout_s), "no such message came"
            return messages[0]

    def frames(self) -> list[Frame]:
        return [message for message in self.messages if isinstance(message, Frame)]


@pytest.fixture
def run():
    """Make a sampler of things, opened and closed with the test."""
    samplers: list[tuple[Sampler, list[Thing]]] = []

    def make(*sources, rate_hz: float = 50) -> tuple[Sampler, Stream]:
        sampler = Sampler(sources, rate_hz)
        samplers.append((sampler, [s for s in sources if isinstance(s, Thing)]))
        stream = Stream(sampler)
        sampler.open()
        return sampler, stream

    yield make
    for sampler, things in samplers:
        for thing in things:
            thing.hang.set()
        sampler.close()


def is_frame(message: Message) -> bool:
    return isinstance(message, Frame)


def state(position: int, wanted: str):
    return lambda message: (
        isinstance(message, Frame) and message.readings[position].state == wanted
    )


def test_a_hung_device_goes_stale_while_the_others_go_on(run) -> None:
    slow, good = Thing("gpu:slow"), Thing("gpu:good")
    sampler, stream = run(slow, good)
    with sampler.watch("test"):
        stream.wait(state(0, "ok"))
        slow.hang.clear()
        stale = stream.wait(state(0, "stale"))
        assert stale.readings[0].values == ()
        assert "not answered" in stale.readings[0].why
        good.value = 0.75
        fresh = stream.wait(lambda m: is_frame(m) and m.readings[1].values == (0.75,))
        assert fresh.readings[0].state == "stale"
        slow.hang.set()
        assert stream.wait(state(0, "ok")).readings[0].values == (0.5,)


def test_a_lost_device_says_so_and_may_come_back(run) -> None:
    thing = Thing("gpu:0")
    sampler, stream = run(thing)
    with sampler.watch("test"):
        thing.lost = True
        lost = stream.wait(state(0, "lost"))
        assert lost.readings[0].why == "It fell off the bus."
        thing.lost = False
        stream.wait(state(0, "ok"))


def test_a_device_none_of_whose_metrics_is_read_is_not_ok(run) -> None:
    thing = Thing("gpu:a", value=None)
    sampler, stream = run(thing)
    with sampler.watch("test"):
        stream.wait(lambda message: is_frame(message) and thing.reads > 0)
        reading = stream.wait(is_frame).readings[0]
    assert (reading.state, reading.values) == ("unavailable", ())
    assert reading.why == "None of its metrics currently has a value."


def test_a_probe_with_a_defect_is_told_and_read_again(run, caplog) -> None:
    thing = Thing("gpu:0")
    thing.broken = True
    sampler, stream = run(thing)
    with sampler.watch("test"):
        while True:
            message = stream.wait(state(0, "unavailable"))
            if "ZeroDivisionError" in message.readings[0].why:
                break
        # once, however often it is read
        stream.wait(is_frame)
        logged = [record for record in caplog.records if "gpu:0" in record.getMessage()]
        assert len(logged) == 1
        thing.broken = False
        stream.wait(state(0, "ok"))


def test_nothing_is_read_while_nobody_watches_and_the_gap_is_told(run) -> None:
    thing = Thing("gpu:0")
    sampler, stream = run(thing)
    time.sleep(0.2)
    assert thing.reads == 0
    with sampler.watch("a"), sampler.watch("b"):
        stream.wait(state(0, "ok"))
    # for ever, if it reads on
    done = (-1, -1)
    while done != (done := (thing.reads, len(stream.messages))):
        time.sleep(0.3)
    last = stream.frames()[-1]
    with sampler.watch("c"):
        gap = stream.wait(lambda m: isinstance(m, Gap))
        assert gap.reason == "not_watched"
        assert gap.to_ms - gap.from_ms >= 300
        assert gap.from_ms >= last.time_ms
        stream.wait(state(0, "ok"))
    assert thing.rests >= 1


def test_ticks_keep_their_time_when_a_tick_is_late(run) -> None:
    thing = Thing("gpu:0")
    sampler, stream = run(thing, rate_hz=20)
    slept: list[float] = []

    def sleep_once(message: Message) -> None:
        # a listener that takes 2.5 periods makes the clock skip, not slip
        if not slept:
            slept.append(0.125)
            time.sleep(0.125)

    with sampler.watch("test"):
        for count in range(30):
            stream.wait(is_frame)
            if count == 10:
                sampler.listen(sleep_once)
        # on a busy machine others are late too, but not all, or not for long
        count = 30
        while count < 600 and slip_ms(stream) > 25:
            stream.wait(is_frame)
            count += 1
    frames = stream.frames()
    seqs = [frame.seq for frame in frames]
    assert seqs == sorted(set(seqs))
    assert seqs[-1] - seqs[0] > len(frames) - 1, "the late tick was not counted"
    assert slip_ms(stream) <= 25


def slip_ms(stream: Stream) -> float:
    """How much later the newest ticks are than the first, by their numbers."""
    late_ms = [frame.time_ms - 50 * frame.seq for frame in stream.frames()]
    return min(late_ms[-15:]) - min(late_ms[:10])


def test_a_changed_description_is_told(run) -> None:
    thing = Thing("gpu:0")
    sampler, stream = run(thing)
    with sampler.watch("test"):
        stream.wait(is_frame)
        metric = Metric("sm_active_ratio", "ratio", "SM active", "no_permission", "No.")
        thing.device = msgspec.structs.replace(thing.device, metrics=(metric,))
        message = stream.wait(lambda m: isinstance(m, Devices))
        assert message.devices[0].metrics[0].state == "no_permission"
    assert sampler.devices[0].metrics[0].why == "No."


def test_a_source_that_is_not_there_is_told_beside_the_others(run) -> None:
    sampler, _ = run(Nothing(), Thing("gpu:0"))
    assert [device.id for device in sampler.devices] == ["gpu:0"]
    assert [(a.reason, a.message) for a in sampler.absences] == [
        ("no_library", "No driver.")
    ]


def test_a_source_with_a_defect_is_told_and_hides_nothing(run, caplog) -> None:
    class Broken(Nothing):
        def open(self) -> Discovery:
            raise ZeroDivisionError("a defect")

    sampler, _ = run(Broken(), Thing("gpu:0"))
    assert [device.id for device in sampler.devices] == ["gpu:0"]
    assert "ZeroDivisionError" in sampler.absences[0].message


def test_a_source_that_hangs_is_told_and_never_closed(run, monkeypatch) -> None:
    monkeypatch.setattr("warpbook_monitors.sampling.sampler.OPEN_TIMEOUT_S", 1.5)
    let_go = threading.Event()
    closed: list[str] = []

    class Hanging(Nothing):
        def open(self) -> Discovery:
            let_go.wait(250)
            return Discovery([])

        def close(self) -> None:
            closed.append("under a running call")

    sampler, stream = run(Hanging(), Thing("gpu:0"))
    assert [(a.what, a.reason) for a in sampler.absences] == [("NVML", "unknown")]
    with sampler.watch("test"):
        stream.wait(state(0, "ok"))
    sampler.close()
    assert closed == []
    let_go.set()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_source_that_opens_late_is_taken_then(run, monkeypatch, is_there) -> None:
    monkeypatch.setattr("warpbook_monitors.sampling.sampler.OPEN_TIMEOUT_S", 1.5)
    let_go = threading.Event()
    started: list[str] = []

    class Feed:
        def start(self, tell) -> None:
            started.append("heard")

        def stop(self) -> None:
            pass

    class Late(Nothing):
        def open(self) -> Discovery:
            let_go.wait(250)
            if not is_there:
                return super().open()
            return Discovery([Thing("gpu:1")], events=Feed())

    sampler, stream = run(Late(), Thing("gpu:0"))
    assert sampler.absences[0].remedy.startswith("It is shown once it opens.")
    with sampler.watch("test"):
        stream.wait(state(0, "ok"))
        assert started == []
        let_go.set()
        devices = stream.wait(lambda message: isinstance(message, Devices))
        expected = ["gpu:0", "gpu:1"][: 1 + is_there]
        assert [device.id for device in devices.devices] == expected
        if is_there:
            stream.wait(state(1, "ok"))
    assert started == ["heard"] * is_there
    # what it says of itself at last is told in the place of its silence
    assert [absence.reason for absence in sampler.absences] == ["no_library"] * (
        not is_there
    )


def test_opening_ends_when_it_is_abandoned_though_a_source_hangs() -> None:
    let_go = threading.Event()

    class Hanging(Nothing):
        def open(self) -> Discovery:
            let_go.wait(250)
            return Discovery([])

    sampler = Sampler([Hanging()])
    opening = threading.Thread(target=sampler.open)
    opening.start()
    sampler.abandon()
    opening.join(120)
    is_waiting = opening.is_alive()
    let_go.set()
    opening.join()
    assert not is_waiting
    sampler.close()


def test_a_listener_with_a_defect_does_not_stop_the_stream(run, caplog) -> None:
    sampler, stream = run(Thing("gpu:0"))
    sampler.listen(lambda _: 1 / 0)
    with sampler.watch("test"):
        first = stream.wait(is_frame)
        assert stream.wait(is_frame).seq > first.seq
    assert "A listener of the sampler failed" in caplog.text


def test_closing_does_not_wait_for_a_hung_device(run, caplog) -> None:
    thing = Thing("gpu:0")
    sampler, stream = run(thing)
    with sampler.watch("test"):
        stream.wait(state(0, "ok"))
        thing.hang.clear()
        stream.wait(state(0, "stale"))
    sampler.close()
    assert "does not answer" in caplog.text
