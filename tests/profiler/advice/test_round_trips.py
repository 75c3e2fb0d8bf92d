"""Copies to the host and back again, with work of the host in between."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.profiler.advice.program import Cell, changes_of, evidence_of
from tests.profiler.advice.test_operations import holds
from warpbook_profiler.techniques.host.round_trip import round_trip

TRIP = "for _ in range(8):\n    y = f(x)\n    y = torch.tanh(y.cpu()).cuda()\n"
SIZE = 4 << 20


def trips(
    source: str | None,
    between: str = "aten::tanh",
    back: int = SIZE,
    took: int = 0,
    waits: bool = False,
) -> Cell:
    cell = Cell(source)
    for _ in range(8):
        cell.call("aten::mm", 100_000)
        with cell.operator("aten::to"), cell.operator("aten::copy_"):
            cell.copy("DtoH", SIZE)
        if between:
            with cell.operator(between):
                cell.python(took or 700_000)
        with cell.operator("aten::to"), cell.operator("aten::copy_"):
            cell.copy("HtoD", back)
            if waits:
                cell.wait()
    cell.wait()
    return cell


def test_passes_stay_on_the_gpu(tmp_path: Path) -> None:
    cell, fixed = trips(TRIP), Cell()
    for _ in range(8):
        fixed.call("aten::mm", 100_000)
        fixed.call("aten::tanh", 4_000)
    fixed.wait()
    change = changes_of(round_trip, cell.evidence(tmp_path))["stay-on-gpu"]
    assert (change.basis, change.line) == ("predicted", 3)
    assert holds(change, fixed)
    assert "tanh" in change.evidence


def test_a_copy_back_that_the_host_waits_for_waits_no_more(tmp_path: Path) -> None:
    """Pageable memory is copied by `aten::copy_`, which waits before it returns."""
    at_once, waited = (
        changes_of(round_trip, trips(TRIP, waits=waits).evidence(tmp_path))
        for waits in (False, True)
    )
    for end in ("low_ns", "high_ns"):
        end_ns = getattr(at_once["stay-on-gpu"], end)
        assert getattr(waited["stay-on-gpu"], end) == pytest.approx(end_ns, rel=0.02)


def test_at_best_the_host_is_warm_for_all_calls_after_it(tmp_path: Path) -> None:
    """A pause that is other work stays."""

    def low_ns(late_ns: int) -> int:
        cell = trips(TRIP)
        for name in ("aten::cat", "aten::std"):
            cell.python(late_ns)
            cell.call(name, 3_000)
        cell.wait()
        change = changes_of(round_trip, cell.evidence(tmp_path))["stay-on-gpu"]
        assert change.low_ns is not None
        return change.low_ns

    at_once = low_ns(0)
    assert low_ns(250_000) == pytest.approx(at_once, rel=0.1)
    assert low_ns(5_000_000) > at_once + 5_000_000


def test_other_work_of_the_cpu_has_only_a_bound(tmp_path: Path) -> None:
    sorted_trip = TRIP.replace("tanh", "sort")
    cell = trips(sorted_trip, "aten::sort")
    change = changes_of(round_trip, cell.evidence(tmp_path))["stay-on-gpu"]
    assert change.basis == "not below"
    by_numpy = (
        "for _ in range(8):\n    a = f(x).cpu().numpy()\n"
        "    a = np.sort(a)\n    x = torch.from_numpy(a).to(device)\n"
    )
    cell = trips(by_numpy, "aten::lift_fresh")
    change = changes_of(round_trip, cell.evidence(tmp_path))["stay-on-gpu"]
    assert (change.basis, change.line) == ("not below", 2)
    assert change.low_ns is not None
    assert change.low_ns < cell.window_ns / 4


BY_NUMPY = (
    "for _ in range(8):\n    a = f(x).cpu().numpy()\n    {}\n"
    "    x = torch.from_numpy(a).to(device)\n"
)


@pytest.mark.parametrize(
    ("step", "count"),
    [
        ("a = np.float32(10) * np.log10(np.maximum(a, 1e-6))", 3),
        ("a = np.clip(a, 0.0, 1.0) ** 0.45", 2),
        ("a = (a - a.mean(axis=0)) / np.sqrt(a.var(axis=0) + 1e-5)", 6),
        ("a = np.where(a > 0, a, 0.01 * a)", 3),
        ("a = np.degrees(np.arctan2(a, 2.0)) % 360", 3),
        ("a = np.divide(np.power(a, 3), np.absolute(a))", 3),
        # other work may be of any kind, or of another size
        ("a = np.percentile(a, 5, axis=0)", None),
        ("a = denoised(a)", None),
        ("a = a[a > 0]", None),
        ("if late:\n        a = np.exp(a)", None),
    ],
)
def test_passes_of_numpy_are_those_of_a_gpu(
    tmp_path: Path, step: str, count: int | None
) -> None:
    cell, fixed = trips(BY_NUMPY.format(step), "aten::lift_fresh"), Cell()
    change = changes_of(round_trip, cell.evidence(tmp_path))["stay-on-gpu"]
    if count is None:
        assert change.basis == "not below"
        return
    for _ in range(8):
        fixed.call("aten::mm", 100_000)
        for _ in range(count):
            fixed.call("aten::log10", 4_000)
    fixed.wait()
    assert change.basis == "predicted" and holds(change, fixed)


OF_TWO = (
    "for u, v in zip(xs, ys):\n"
    "    a = np.arctan2({}, {})\n"
    "    angles.append(torch.from_numpy(a).to(device))\n"
)


@pytest.mark.parametrize(
    "source",
    [
        OF_TWO.format("u.cpu().numpy()", "v.cpu().numpy()"),
        OF_TWO.format("-u.cpu().numpy()", "-v.cpu().numpy()"),
        "for u, v in zip(xs, ys):\n    b = u.cpu().numpy()\n    c = v.cpu().numpy()\n"
        "    a = np.hypot(b, c)\n    x = torch.from_numpy(a).to(device)\n",
    ],
)
def test_all_that_leaves_for_one_result_stays(tmp_path: Path, source: str) -> None:
    """Both are copied; what the host does between the two copies goes, too."""
    cell, fixed = Cell(source), Cell()
    for _ in range(8):
        for one in (cell, fixed):
            one.call("aten::mm", 100_000)
        for took in (1_500_000, 9_000_000):
            with cell.operator("aten::to"), cell.operator("aten::copy_"):
                cell.copy("DtoH", SIZE)
            cell.python(took)
        with cell.operator("aten::to"), cell.operator("aten::copy_"):
            cell.copy("HtoD", SIZE)
        fixed.call("aten::atan2", 4_000)
    cell.wait()
    fixed.wait()
    change = changes_of(round_trip, cell.evidence(tmp_path))["stay-on-gpu"]
    assert change.basis == "predicted" and holds(change, fixed)
    assert "24 copies" in change.evidence
    assert change.high_ns is not None and change.high_ns < 3_000_000


def test_what_left_for_other_work_is_no_part_of_a_trip(tmp_path: Path) -> None:
    """Results that are kept on the host leave with the size of what comes back."""
    cell = Cell(TRIP.replace("y = torch", "logs.append(y.cpu())\n    y = torch"))
    for _ in range(8):
        cell.call("aten::mm", 100_000)
        with cell.operator("aten::to"), cell.operator("aten::copy_"):
            cell.copy("DtoH", SIZE)
        cell.call("aten::mm", 100_000)
        with cell.operator("aten::to"), cell.operator("aten::copy_"):
            cell.copy("DtoH", SIZE)
        with cell.operator("aten::tanh"):
            cell.python(700_000)
        with cell.operator("aten::to"), cell.operator("aten::copy_"):
            cell.copy("HtoD", SIZE)
    cell.wait()
    change = changes_of(round_trip, cell.evidence(tmp_path))["stay-on-gpu"]
    assert "16 copies" in change.evidence


COUNTS = (
    "def count(x, y):\n"
    "    both = x.cpu().numpy() * 9 + y.cpu().numpy()\n"
    "    table = np.bincount(both.ravel())\n"
    "    return torch.from_numpy(table).to(device)\n"
)


def counts(source: str, back: int = 4_096) -> Cell:
    cell = Cell(source)
    for _ in range(8):
        for _ in range(2):
            cell.call("aten::argmax", 20_000)
            with cell.operator("aten::to"), cell.operator("aten::copy_"):
                cell.copy("DtoH", SIZE)
        cell.python(4_000_000)
        with cell.operator("aten::to"), cell.operator("aten::copy_"):
            cell.copy("HtoD", back)
        cell.call("aten::sum", 3_000)
    cell.wait()
    return cell


def test_counts_of_the_host_that_come_back(tmp_path: Path) -> None:
    cell, fixed = counts(COUNTS), Cell()
    for _ in range(8):
        fixed.call("aten::argmax", 20_000)
        fixed.call("aten::argmax", 20_000)
        fixed.call("aten::bincount", 40_000)
        fixed.call("aten::sum", 3_000)
    fixed.wait()
    change = changes_of(round_trip, cell.evidence(tmp_path))["stay-on-gpu"]
    assert (change.basis, change.line) == ("not below", 2)
    assert change.low_ns is not None
    assert change.low_ns < fixed.window_ns < cell.window_ns / 10
    assert "24 copies" in change.evidence


@pytest.mark.parametrize(
    ("source", "back"),
    [
        # what comes back is more, or another thing
        (COUNTS, 2 * SIZE),
        ("for x in xs:\n    kept.append(f(x.to(device)).cpu().numpy())\n", 4_096),
    ],
)
def test_other_inputs_are_no_counts(tmp_path: Path, source: str, back: int) -> None:
    assert not changes_of(round_trip, counts(source, back).evidence(tmp_path))


def test_a_round_trip_without_a_source(tmp_path: Path) -> None:
    changes = changes_of(round_trip, trips(None).evidence(tmp_path))
    assert changes["stay-on-gpu"].basis == "predicted"


def corrected(source: str, python_ns: int = 4_000_000, first: bool = False) -> Cell:
    """Copy out and back around code of another cell; `first` is copied in before."""
    cell = Cell(source)
    for number in range(8):
        if first and number == 0:
            cell.call("aten::mm", 100_000)
            with cell.operator("aten::to"), cell.operator("aten::copy_"):
                cell.copy("HtoD", SIZE)
        cell.call("aten::mm", 100_000)
        with cell.operator("aten::to"), cell.operator("aten::copy_"):
            cell.copy("DtoH", SIZE)
        cell.python(python_ns)
        with cell.operator("aten::to"), cell.operator("aten::copy_"):
            cell.copy("HtoD", SIZE)
    cell.wait()
    return cell


CORRECTED = "for x in plates:\n    areas.append({}.sum())\n"


@pytest.mark.parametrize("called", ["correct(x)", "scipy_filter(x @ w)", "fix.one(x)"])
def test_a_round_trip_of_another_cell(tmp_path: Path, called: str) -> None:
    cell, fixed = corrected(CORRECTED.format(called)), Cell()
    for _ in range(8):
        fixed.call("aten::mm", 100_000)
        fixed.call("aten::clamp", 4_000)
    fixed.wait()
    change = changes_of(round_trip, cell.evidence(tmp_path))["stay-on-gpu"]
    assert change.basis == "not below" and not change.code
    assert change.low_ns is not None
    assert change.low_ns < fixed.window_ns < cell.window_ns / 4


TO_NUMPY = (
    "def correct(self, x):\n    a = x.cpu().numpy()\n    a = {}\n"
    "    return torch.from_numpy(a).to(x.device)\n"
)


@pytest.mark.parametrize(
    ("step", "basis"),
    [
        ("np.sqrt(np.clip(a - self.low, 0, 1))", "predicted"),
        ("np.arcsinh(a / 0.02) / 4", "predicted"),
        ("scipy_filter(a)", "not below"),
    ],
)
def test_a_round_trip_of_a_known_function(
    tmp_path: Path, step: str, basis: str
) -> None:
    evidence = corrected(CORRECTED.format("fix(x)")).evidence(tmp_path)
    fixed = Cell()
    for _ in range(8):
        fixed.call("aten::mm", 100_000)
        for _ in range(3):
            fixed.call("aten::clamp", 4_000)
    fixed.wait()
    run = dataclasses.replace(
        evidence.run, called={"Fix.__call__": TO_NUMPY.format(step)}
    )
    change = changes_of(round_trip, evidence_of(evidence.events, run))["stay-on-gpu"]
    assert change.basis == basis
    if basis == "predicted":
        assert holds(change, fixed)


@pytest.mark.parametrize(
    "cell",
    [
        # the next input comes as a result leaves, and a place is only exchanged
        corrected(CORRECTED.format("step(x)"), first=True),
        corrected(CORRECTED.format("swapped(x)"), python_ns=10_000),
        # the cell itself copies, and nothing of that comes back
        corrected("for x in data:\n    kept.append(model(x.cuda()).cpu())\n"),
    ],
)
def test_copies_of_other_cells_that_are_no_round_trip(
    tmp_path: Path, cell: Cell
) -> None:
    assert not changes_of(round_trip, cell.evidence(tmp_path))


@pytest.mark.parametrize(
    "cell",
    [
        # results that are kept, while the next inputs come
        trips("for x in data:\n    kept.append(model(x.cuda()).cpu())\n"),
        trips(TRIP, back=SIZE // 2),
        # nothing is computed in between
        trips(None, between="aten::view"),
        trips(None, between=""),
    ],
)
def test_copies_that_are_no_round_trip(tmp_path: Path, cell: Cell) -> None:
    assert not changes_of(round_trip, cell.evidence(tmp_path))
