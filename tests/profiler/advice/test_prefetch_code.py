"""Batches that are copied on a second stream: what turns see of it, and where not."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.profiler.advice.program import Cell, changes_of
from warpbook_profiler.techniques.data.prefetch import prefetch


def in_turns(source: str | None, count: int = 8) -> Cell:
    cell = Cell(source)
    for _ in range(count):
        with cell.operator("aten::to"), cell.operator("aten::copy_"):
            cell.copy("HtoD", 50 << 20, "Pinned")
        cell.call("aten::mm", 900_000, dims=([4096, 4096], [4096, 4096]))
    cell.wait()
    return cell


@dataclass
class Batch:
    """A number that is copied as a tensor is."""

    number: int
    is_cuda = True
    is_pinned_here: bool = True

    def is_pinned(self) -> bool:
        return self.is_pinned_here

    def to(self, device: str, non_blocking: bool) -> Batch:
        assert device == "cuda" and non_blocking
        return Batch(self.number)

    def cuda(self, non_blocking: bool) -> Batch:
        return self.to("cuda", non_blocking)

    def record_stream(self, stream: object) -> None:
        assert stream

    def __mul__(self, factor: int) -> int:
        return self.number * factor


def torch_of_one_stream() -> SimpleNamespace:
    stream = SimpleNamespace(
        record_event=lambda: SimpleNamespace(synchronize=lambda: None),
        wait_event=lambda event: None,
        wait_stream=lambda stream: None,
    )
    cuda = SimpleNamespace(
        Stream=lambda: stream, current_stream=lambda: stream, stream=nullcontext
    )
    return SimpleNamespace(cuda=cuda, inference_mode=nullcontext, Tensor=Batch)


AHEAD = (
    "for batch in batches:\n    x = batch.to(dev, non_blocking=True)\n"
    "    out.append(x * 2)\n"
)


WITHIN = "".join(f"    {line}\n" for line in AHEAD.splitlines())


@pytest.mark.parametrize(
    "source", [AHEAD, f"with torch.inference_mode():\n{WITHIN}", None]
)
def test_the_next_batch_is_copied_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str | None
) -> None:
    change = changes_of(prefetch, in_turns(source).evidence(tmp_path))["prefetch"]
    # the first copy, and then the longer of both each turn
    expected_ns = (50 << 20) / 50 + 7 * (50 << 20) / 50 + 900_000
    assert change.time_ns is not None
    assert change.time_ns == pytest.approx(expected_ns, rel=0.1)
    if source:
        assert "for batch, x in copied_ahead(batches, lambda" in change.code
        torch = torch_of_one_stream()
        monkeypatch.setitem(sys.modules, "torch", torch)
        batches = [Batch(number) for number in range(5)]
        for given in (batches, iter(batches)):
            out: list[int] = []
            names = {"dev": "cuda", "out": out, "batches": given, "torch": torch}
            exec(change.code, names)
            assert out == [0, 2, 4, 6, 8]


def test_what_gives_batches_by_what_turns_did_is_not_asked_sooner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = torch_of_one_stream()
    monkeypatch.setitem(sys.modules, "torch", torch)
    code = changes_of(prefetch, in_turns(AHEAD).evidence(tmp_path))["prefetch"].code
    out = [1]
    batches = (Batch(out[-1]) for _ in range(4))
    exec(code, {"dev": "cuda", "out": out, "batches": batches, "torch": torch})
    assert out == [1, 2, 4, 8, 16]


@pytest.mark.parametrize(
    "turn",
    [
        # a later batch may be what it makes it
        "batches[k].mul_(2)",
        "batch.zero_()",
        "refill(batches)",
        "dev = other",
    ],
)
def test_batches_that_turns_write_to_are_not_copied_sooner(
    tmp_path: Path, turn: str
) -> None:
    cell = in_turns(f"{AHEAD}    {turn}\n")
    code = changes_of(prefetch, cell.evidence(tmp_path))["prefetch"].code
    assert "copied_ahead" not in code


def test_what_is_copied_back_at_once_is_on_no_other_stream(tmp_path: Path) -> None:
    cell = in_turns(f"{AHEAD}    out.append(x.to('cpu', non_blocking=True))\n")
    cell.copy("DtoH", 1 << 20, "Pinned")
    assert not changes_of(prefetch, cell.evidence(tmp_path))["prefetch"].code


TURNS_OF_ANY_FORM = [
    "queue = list(batches)\nwhile queue:\n"
    "    out.append(queue.pop(0).to(dev, non_blocking=True) * 2)\n",
    "def doubled(batch):\n    x = batch.to(device=dev, non_blocking=True)\n"
    "    return x * 2\nout += map(doubled, batches)\n",
    "out += [batch.cuda(non_blocking=True) * 2 for batch in batches]\n",
    "class Net:\n    def __call__(self, x):\n"
    "        return x.to(dev, non_blocking=True) * 2\n"
    "net = Net()\nfor at, batch in enumerate(batches):\n    out.append(net(batch))\n",
]


def copied_beside(tmp_path: Path, source: str) -> str:
    return changes_of(prefetch, in_turns(source).evidence(tmp_path))["prefetch"].code


@pytest.mark.parametrize("source", TURNS_OF_ANY_FORM)
def test_copies_of_turns_of_any_form_are_on_another_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    code = copied_beside(tmp_path, source)
    torch, streams, waits = torch_of_one_stream(), list[object](), list[object]()
    torch.cuda.stream = lambda stream: nullcontext(streams.append(stream))
    torch.cuda.current_stream().wait_stream = waits.append
    monkeypatch.setitem(sys.modules, "torch", torch)
    out: list[int] = []
    # the last one is made by the GPU, or by what no stream copies
    batches = [Batch(number, number < 4) for number in range(5)]
    exec(code, {"dev": "cuda", "out": out, "batches": batches, "torch": torch})
    assert out == [0, 2, 4, 6, 8]
    # each copy is on it and waited for, and twice it waits for what was launched
    assert len(streams) == 4 and len(waits) == 6


@pytest.mark.parametrize(
    "source",
    [
        # once, and one that waits
        "x = batches[0].to(dev, non_blocking=True)\nout = [x * n for n in range(8)]\n",
        "while batches:\n    out.append(batches.pop().to(dev) * 2)\n",
    ],
)
def test_other_copies_stay_on_their_stream(tmp_path: Path, source: str) -> None:
    assert not copied_beside(tmp_path, source)


@pytest.mark.parametrize("count", [1, 2])
def test_one_batch_has_no_next_one(tmp_path: Path, count: int) -> None:
    assert not changes_of(prefetch, in_turns(AHEAD, count).evidence(tmp_path))
