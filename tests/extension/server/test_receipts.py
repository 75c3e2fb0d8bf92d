"""Receipts of cells: from the kernel's two timestamps and the server's history."""

import asyncio
import json
import time
from types import SimpleNamespace

import msgspec
import pytest
from tornado.httpclient import HTTPClientError

from warpbook.protocol import (
    PROTOCOL_VERSION,
    Allocator,
    CellRun,
    Device,
    DeviceHolders,
    Frame,
    Holder,
    Holders,
    Receipt,
)
from warpbook.server.cells.receipts import MAX_CELL_BYTES
from warpbook_monitors.frames import Reading

RECEIPT = ("warpbook", "api", "v1", "receipt")


class Past:
    """A history of the recording's two H200s in which one can say what they did.

    They stand for GPUs of this machine: what a recording did is no cell's.
    """

    def __init__(self, app, hello: dict, seconds: float = 30.0) -> None:
        self.app = app
        self.gpus = [
            msgspec.convert(described, Device) for described in hello["devices"][:2]
        ]
        self.now_ms = time.time() * 1000
        self.begin_ms = self.now_ms - 1000 * seconds
        app._broadcaster.history._begin_ms = 0.0
        for reader in app._broadcaster.sampler._readers:
            if reader.device.origin == "replay":
                device = msgspec.structs.replace(reader.device, origin="live")
                reader._probe.device = device
        self._ticks = round(10 * seconds)

    def fill(self, *busy: tuple[float, float, float]) -> None:
        """Let the SM of both be active in some times: from, to, and how much."""
        for tick in range(self._ticks):
            at_ms = self.begin_ms + 100 * tick
            sm = next((s for a, b, s in busy if a < at_ms <= b), 0.0)
            values = {
                "gpu_utilization_ratio": sm,
                "sm_active_ratio": sm,
                "tensor_active_ratio": sm / 2,
                "dram_active_ratio": sm / 4,
                "memory_used_bytes": 8.0 * 2**30,
                "power_watts": 400.0,
                "clocks_event_reasons": 4.0 if sm else 0.0,
            }
            frame = Frame(
                tick,
                at_ms,
                tuple(
                    Reading(
                        at,
                        "ok",
                        tuple(values.get(metric.name) for metric in gpu.metrics),
                    )
                    for at, gpu in enumerate(self.gpus)
                ),
            )
            self.app._broadcaster._take(frame)

    def run(self, run_id: str, from_s: float, to_s: float, **changes) -> dict:
        """A cell that ran so long after the history began."""
        run = CellRun(
            id=run_id,
            protocol=PROTOCOL_VERSION,
            kernel_id="k",
            notebook="a/b.ipynb",
            cell_id="c",
            execution_count=1,
            title="<img src=x onerror=alert(1)>",
            started_ms=self.begin_ms + 1000 * from_s,
            ended_ms=self.begin_ms + 1000 * to_s,
            status="ok",
        )
        return {**json.loads(msgspec.json.encode(run)), **changes}

    def busy(self, from_s: float, to_s: float, sm: float) -> tuple[float, float, float]:
        return (self.begin_ms + 1000 * from_s, self.begin_ms + 1000 * to_s, sm)


@pytest.fixture
def warpbook_config() -> dict:
    # what is put into the history must come before what is read now
    return {"alerts": "watched"}


@pytest.fixture
def make_past(connect, jp_serverapp):
    async def make(**kwargs) -> Past:
        hello = await (await connect()).next("hello")
        (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
        return Past(app, hello, **kwargs)

    return make


async def hand_in(ingest, run: dict) -> Receipt:
    response = await ingest("/v1/cells", run)
    assert response.code == 200, response.body
    return msgspec.json.decode(response.body, type=Receipt)


async def test_a_receipt_says_what_the_cell_took_and_against_the_run_before(
    ingest, connect, make_past
) -> None:
    past = await make_past()
    past.fill(past.busy(2, 4, 0.5), past.busy(10, 12, 0.75))
    open_view = await connect()
    await open_view.next("hello")
    first = await hand_in(ingest, past.run("r-1", 2, 4))
    assert first.previous is None
    assert len(first.devices) == 2
    sm = first.devices[0].span.metrics["sm_active_ratio"]
    assert sm.mean == pytest.approx(0.5, abs=0.03)
    assert first.devices[0].span.energy_joules == pytest.approx(800, rel=0.02)
    assert first.wall_ms == pytest.approx(2000)
    message = await open_view.next("receipt")
    assert message == json.loads(msgspec.json.encode(first))

    second = await hand_in(ingest, past.run("r-2", 10, 12))
    assert second.previous is not None
    assert second.previous.cell.id == "r-1"
    parts = second.line.split(" · ")
    assert parts[0] == "2.00 s"
    assert parts[1] == "of all 2 GPUs of this machine"
    assert [part.split()[0] for part in parts[2:5]] == ["SM", "tensor", "DRAM"]
    assert "16.0 GiB in use" in parts
    assert "≈ 1,600 J" in parts, "of both, and from the power"
    assert any(part.startswith("power cap ") for part in parts)
    assert parts[-1] == "SM +25 points against the run before"
    notes = " ".join(second.devices[0].notes)
    assert "GPU time without a trace is unknown" in notes
    assert "whole device" in notes

    assert second.view is not None
    (power,) = (
        row for row in second.view.devices[0].table.rows if row[0].text == "Mean power"
    )
    assert [cell.text for cell in power[1:]] == ["400 W", "400 W"]

    late = await connect()
    ids = [(await late.next("receipt"))["cell"]["id"] for _ in range(2)]
    assert ids == ["r-1", "r-2"]


async def test_what_a_recording_did_is_charged_to_no_cell(ingest, connect) -> None:
    view = await connect()
    await view.next("hello")
    now_ms = time.time() * 1000
    run = CellRun(
        id="r-1",
        protocol=PROTOCOL_VERSION,
        kernel_id="k",
        notebook="a.ipynb",
        cell_id="c",
        execution_count=1,
        title="time.sleep(2)",
        started_ms=now_ms - 2500,
        ended_ms=now_ms - 500,
        status="ok",
    )
    receipt = await hand_in(ingest, json.loads(msgspec.json.encode(run)))
    assert receipt.line == "2.00 s · the GPU is a REPLAY: this cell's cost is unknown"
    assert receipt.devices == ()


async def test_torchs_own_peak_and_gpus_are_told(ingest, make_past) -> None:
    past = await make_past()
    past.fill(past.busy(2, 4, 0.5))
    uuid = past.gpus[1].id.removeprefix("gpu:GPU-")
    counted = Allocator(0, uuid, 1, 2, 12 * 2**30, 0)
    receipt = await hand_in(
        ingest, past.run("r-1", 2, 4, allocators=[msgspec.to_builtins(counted)])
    )
    assert [device.span.device for device in receipt.devices] == [past.gpus[1].id]
    assert "peak 12.0 GiB" in receipt.line
    assert "GPUs" not in receipt.line
    assert "this machine" not in receipt.line


@pytest.mark.parametrize(
    ("others", "shared"),
    [((), False), ((Holder("program", "train.py", 2**30),), True), (None, None)],
)
async def test_figures_of_a_gpu_that_others_use_are_told_as_such(
    ingest, make_past, others, shared
) -> None:
    past = await make_past()
    past.fill(past.busy(28, 29.5, 0.5))
    mine = Holder("kernel", "b.ipynb", 2**30, kernel_id="k")
    if others is not None:
        held = DeviceHolders((mine, *others), 0)
        known_holders = Holders(time.time() * 1000, {past.gpus[0].id: held})
        # the recording that plays here does not tell whose memory it was
        past.app._receipts._holders = SimpleNamespace(newest=known_holders)
    receipt = await hand_in(ingest, past.run("r-1", 28, 29.5))
    device = receipt.devices[0]
    assert device.shared is shared
    assert ("shared with others" in receipt.line) is bool(shared)
    assert any("whole device" in note for note in device.notes) is (shared is not False)
    # where it is known whose memory it is, only that GPU is told
    assert len(receipt.devices) == (2 if others is None else 1)


class Known:
    """Holders that were read just now."""

    def __init__(self, devices: dict[str, DeviceHolders]) -> None:
        self.devices = devices
        self.newest = None

    async def read(self) -> Holders:
        return Holders(time.time() * 1000, self.devices)


def two_and_a_split_one(past: Past, monkeypatch) -> list[Device]:
    """Let the machine have three live GPUs, and the last be split in two."""
    first, second = (msgspec.structs.replace(g, origin="live") for g in past.gpus)
    split = msgspec.structs.replace(first, id="gpu:GPU-3", index=2)
    parts = [
        msgspec.structs.replace(
            first, id=f"mig:MIG-{n}", kind="mig", facts={"parent": split.id}
        )
        for n in range(2)
    ]
    devices = [first, second, split, *parts]
    monkeypatch.setattr(type(past.app._broadcaster), "devices", tuple(devices))
    return devices


@pytest.mark.parametrize(
    ("held", "words", "count"),
    [
        # nobody is left out of the lists, and the kernel is in none
        (DeviceHolders((), 2**20), "no GPU was used by this kernel itself", 0),
        (
            DeviceHolders((Holder("program", "train.py", 2**30),), 0),
            "no GPU was used by this kernel itself",
            0,
        ),
        # some who hold memory may not be in the list
        (DeviceHolders((), 2**30), "of all 4 GPUs of this machine", 4),
        (DeviceHolders((), None), "of all 4 GPUs of this machine", 4),
        (DeviceHolders((), 0, ("Hidden.",)), "of all 4 GPUs of this machine", 4),
    ],
)
async def test_figures_are_never_the_cells_own_where_nobody_knows(
    ingest, make_past, monkeypatch, held, words, count
) -> None:
    past = await make_past()
    past.fill(past.busy(0, 30, 0.14))
    devices = two_and_a_split_one(past, monkeypatch)
    past.app._receipts._holders = Known({device.id: held for device in devices})
    receipt = await hand_in(ingest, past.run("r-1", 28, 29.5))
    assert receipt.line.split(" · ")[1] == words
    assert [device.span.device for device in receipt.devices] == [
        device.id for device in devices if device.id != "gpu:GPU-3"
    ][:count]
    assert ("SM" in receipt.line) is (count > 0)


async def test_a_short_cell_is_estimated_or_unknown_in_words(ingest, make_past) -> None:
    past = await make_past()
    past.fill(past.busy(2, 20, 0.5))
    trivial = await hand_in(ingest, past.run("r-0", 4, 4.0123))
    assert trivial.line == "12.3 ms"
    flash = await hand_in(ingest, past.run("r-1", 5, 5.08))
    assert flash.line.endswith("too short for a reading of the GPU")
    for device in flash.devices:
        assert device.span.metrics == {}
        assert device.span.energy_joules is None
        assert "unknown" in device.notes[0]
    short = await hand_in(ingest, past.run("r-2", 6, 6.25))
    assert "SM ≈ 50 %" in short.line
    assert "estimated" in short.line
    assert "Estimated" in short.devices[0].notes[0]
    nothing = await hand_in(ingest, past.run("r-3", 7, 7))
    assert nothing.wall_ms == 0


async def test_a_cell_that_nobody_watched_is_told_so(ingest, make_past) -> None:
    past = await make_past()
    receipt = await hand_in(ingest, past.run("r-1", 2, 4))
    assert "not read meanwhile" in receipt.line
    assert "%gpuwatch" in receipt.devices[0].notes[0]
    metrics = receipt.devices[0].span.metrics
    assert all(metric.mean is None for metric in metrics.values())


async def test_a_cell_that_has_just_ended_waits_for_its_readings(
    ingest, connect, make_past
) -> None:
    past = await make_past()
    client = await connect()
    await client.subscribe()
    await client.next("frame")
    await asyncio.sleep(1)
    covered = []
    # a busy machine may not read all the time
    for number in range(200):
        await client.catch_up()
        await client.next("frame")
        await asyncio.sleep(0.06)
        now_s = time.time() - past.begin_ms / 1000
        receipt = await hand_in(ingest, past.run(f"r-{number}", now_s - 0.6, now_s))
        sm = receipt.devices[0].span.metrics["sm_active_ratio"]
        covered.append(sm.covered_ratio)
        if covered[-1] == pytest.approx(1.0, abs=0.02):
            return
    raise AssertionError(f"never covered: {covered}")


@pytest.mark.parametrize(
    ("change", "code", "why"),
    [
        ({"protocol": 99}, 409, "install the same warpbook"),
        ({"id": "../../etc"}, 400, "id"),
        ({"title": "x" * 201}, 400, "title"),
        ({"started_ms": 9e12}, 422, "ends before it starts"),
        ({"started_ms": -1e300}, 422, "ends before it starts"),
        ({"ended_ms": 4e12}, 422, "has not ended"),
        ({"ended_ms": None}, 400, "ended_ms"),
        ({"status": "fine"}, 400, "status"),
        (
            {
                "allocators": [
                    {
                        "index": 0,
                        "uuid": None,
                        "allocated_bytes": 0,
                        "reserved_bytes": 0,
                        "peak_allocated_bytes": -1,
                        "retries": 0,
                    }
                ]
            },
            400,
            "peak_allocated_bytes",
        ),
        ({"notebook": "n" * MAX_CELL_BYTES}, 413, "bytes"),
    ],
)
async def test_a_wrong_cell_is_refused_in_words(
    ingest, make_past, change, code, why
) -> None:
    past = await make_past()
    response = await ingest("/v1/cells", past.run("r-1", 2, 4, **change))
    assert response.code == code
    assert why in json.loads(response.body)["message"]


@pytest.mark.parametrize("path", ["/v1/cells", "/v1/watch"])
@pytest.mark.parametrize("body", [b"", b"garbage", b"\xff", b"[]", b'{"protocol":1}'])
async def test_garbage_is_refused(ingest, path, body) -> None:
    assert (await ingest(path, body)).code == 400
    assert (await ingest(path, body, secret="wrong")).code == 403


async def test_receipts_are_kept_up_to_a_bound(ingest, connect, make_past) -> None:
    past = await make_past()
    for number in range(510):
        await hand_in(ingest, past.run(f"r-{number}", 2, 2.01))
    assert len(past.app._receipts._kept) == 500
    for number in range(60):
        wide = past.run(f"w-{number}", 2, 2.01, notebook="n" * 30_000)
        await hand_in(ingest, wide)
    late = await connect()
    first = await late.next("receipt")
    assert int(first["cell"]["id"].removeprefix("w-")) > 20, "a megabyte of them"


async def test_a_click_on_a_band_gives_a_receipt_without_the_kernel(
    jp_fetch, ingest, make_past
) -> None:
    past = await make_past()
    past.fill(past.busy(2, 4, 0.5))

    async def ask(from_s: float, to_s: float, **changes: str) -> Receipt:
        params = {
            "from_ms": str(past.begin_ms + 1000 * from_s),
            "to_ms": str(past.begin_ms + 1000 * to_s),
            "kernel_id": "k",
            "cell_id": "c",
            **changes,
        }
        body = (await jp_fetch(*RECEIPT, params=params)).body
        return msgspec.json.decode(body, type=Receipt)

    just_now = await ask(27, 29, kernel_id="another")
    assert just_now.line.startswith("2.00 s · of all 2 GPUs of this machine · SM")
    receipt = await ask(2, 4, title="x" * 300)
    assert receipt.line.startswith("2.00 s · of all 2 GPUs of this machine · SM 5")
    assert receipt.cell.title == "x" * 200
    # the kernel's own is better: it knows what torch counted
    await hand_in(ingest, past.run("r-1", 2.01, 3.99))
    assert (await ask(2, 4)).cell.id == "r-1"
    assert (await ask(2, 4, cell_id="another")).cell.id != "r-1"
    later = await ask(6, 8)
    assert later.previous is not None and later.previous.cell.id == "r-1"


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"from_ms": "nan", "to_ms": "1"},
        {"from_ms": "2", "to_ms": "1"},
        {"from_ms": "1", "to_ms": "4e12"},
        {"from_ms": "1", "to_ms": "inf"},
    ],
)
async def test_a_wrong_question_is_refused(jp_fetch, params) -> None:
    with pytest.raises(HTTPClientError) as refused:
        await jp_fetch(*RECEIPT, params=params)
    assert refused.value.code == 400
    assert json.loads(refused.value.response.body)["message"]


async def test_a_cell_is_judged_by_its_readings(ingest, make_past) -> None:
    past = await make_past()
    past.fill(past.busy(2, 4, 0.2), past.busy(8, 10, 0.9))
    waiting = await hand_in(ingest, past.run("r-1", 2, 4))
    working = await hand_in(ingest, past.run("r-2", 8, 10))
    short = await hand_in(ingest, past.run("r-3", 2, 2.5))
    kinds = [
        receipt.devices[0].verdict and receipt.devices[0].verdict.kind
        for receipt in (waiting, working, short)
    ]
    assert kinds == ["host-bound", "mixed", None]


async def test_a_kernel_replaces_no_receipt_of_another(
    connect, ingest, jp_serverapp, jp_fetch
) -> None:
    """Neither one that is kept, in memory or on disk, nor one that is being written."""
    (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    client = await connect()
    past = Past(app, await client.next("hello"))
    past.fill()
    mine, others = (
        past.run("same", 1, 3, kernel_id=kernel_id) for kernel_id in ("mine", "other")
    )
    answers = await asyncio.gather(
        ingest("/v1/cells", mine), ingest("/v1/cells", others)
    )
    assert sorted(answer.code for answer in answers) == [200, 403]
    owner = mine if answers[0].code == 200 else others
    loser = others if owner is mine else mine
    assert (await ingest("/v1/cells", loser)).code == 403
    app._receipts._kept.clear()
    assert (await ingest("/v1/cells", loser)).code == 403
    assert (await ingest("/v1/cells", owner)).code == 200
    answer = await jp_fetch("warpbook", "api", "v1", "records", "receipt", "same")
    assert json.loads(answer.body)["cell"]["kernel_id"] == owner["kernel_id"]
