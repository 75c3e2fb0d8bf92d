"""A receipt in words: one line for a person, and what makes its figures unsure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from warpbook.protocol import CellRun, DeviceReceipt, DeviceSpan, Receipt
from warpbook_monitors import units

#: how the GPUs of a receipt are known: the cell's kernel uses them, it uses none of
#: the machine's, or nobody can tell, and they are all the machine's
Whose = Literal["kernel", "nobody", "unknown"]

#: a GPM window is that long: what is shorter leaves no mark of its own
SHORTEST_MS = 100.0
#: below three readings the edges weigh as much as the cell
_ESTIMATED_MS = 300.0
#: a shorter cell that had torch do nothing has nothing to tell but its time
_TRIVIAL_MS = 50.0
#: conditions that held for less are not worth a place in the line
_WORTH_TELLING_RATIO = 0.05
_COVERED_RATIO = 0.9

#: in the line, by the first metric that a GPU has
_FIGURES = (
    (("sm_active_ratio", "SM"), ("gpu_utilization_ratio", "GPU utilization")),
    (("tensor_active_ratio", "tensor"),),
    (("dram_active_ratio", "DRAM"), ("memory_utilization_ratio", "memory busy")),
)


def one_line(
    run: CellRun,
    devices: Sequence[DeviceReceipt],
    previous: Receipt | None,
    whose: Whose,
    is_replay: bool,
) -> str:
    """Say what a cell took, figures and units."""
    wall_ms = run.ended_ms - run.started_ms
    said = [units.duration(wall_ms)]
    if wall_ms < _TRIVIAL_MS and not run.allocators:
        return said[0]
    if is_replay:
        return " · ".join((*said, "the GPU is a REPLAY: this cell's cost is unknown"))
    if whose == "nobody":
        # what programs that it started did, and that are over, is not known
        return " · ".join((*said, "no GPU was used by this kernel itself"))
    if not devices:
        return " · ".join((*said, "no GPU is read here"))
    count = len(devices)
    gpus = "GPU" if count == 1 else f"{count} GPUs"
    if whose == "unknown":
        whole = "this machine's GPU" if count == 1 else f"all {gpus} of this machine"
        said.append(f"of {whole}")
    elif count > 1:
        said.append(gpus)
    if wall_ms < SHORTEST_MS:
        said.append("too short for a reading of the GPU")
    elif not any(map(_is_read, devices)):
        said.append("the GPU was not read meanwhile")
    else:
        about = "≈ " if wall_ms < _ESTIMATED_MS else ""
        said += _shares(devices, about)
        said += _peak(run, devices)
        said += _energy(devices)
        said += _conditions(devices)
        if about:
            said.append("estimated: it ran for fewer than three readings")
    if any(device.shared for device in devices):
        said.append("shared with others")
    if previous is not None and wall_ms >= _ESTIMATED_MS:
        said += _change(devices, previous)
    return " · ".join(said)


def notes(
    run: CellRun, span: DeviceSpan, shared: bool | None, missing: str
) -> tuple[str, ...]:
    """Say what makes the figures of one GPU unsure."""
    wall_ms = run.ended_ms - run.started_ms
    covered = _covered(span)
    said = []
    if wall_ms < SHORTEST_MS:
        said.append(
            f"The cell ran for {units.duration(wall_ms)}, less than one reading takes "
            f"({SHORTEST_MS:.0f} ms): what the GPU did in it is unknown."
        )
    elif covered == 0:
        said.append(
            f"{missing} The GPU was not read while the cell ran; it is read while a "
            "dashboard is open and, with %gpuwatch on, from shortly after a cell "
            "begins until half a minute after it.".strip()
        )
    elif wall_ms < _ESTIMATED_MS:
        said.append(
            "Estimated: the cell ran for fewer than three readings, and what was "
            "before and after it weighs as much."
        )
    elif covered < _COVERED_RATIO:
        said.append(f"Readings cover {units.share(covered)} of the cell. {missing}")
    if span.energy_basis == "power":
        said.append("The energy is estimated from the power that was read.")
    if shared:
        said.append(
            "Others hold memory on this GPU: the figures are the whole device's, "
            "theirs and this cell's."
        )
    elif shared is None:
        said.append("The figures are the whole device's, whoever used it.")
    said.append("GPU time without a trace is unknown: %%gpuprof takes one.")
    return tuple(sentence.strip() for sentence in said)


def _shares(devices: Sequence[DeviceReceipt], about: str) -> Iterable[str]:
    for choices in _FIGURES:
        for name, label in choices:
            mean = _mean(devices, name)
            if mean is not None:
                share = units.share(mean)
                yield f"{label} {'' if share.startswith('<') else about}{share}"
                break


def _peak(run: CellRun, devices: Sequence[DeviceReceipt]) -> Iterable[str]:
    if run.allocators:
        peak = sum(allocator.peak_allocated_bytes for allocator in run.allocators)
        yield f"peak {units.size(peak)}"
        return
    spans = [device.span.metrics.get("memory_used_bytes") for device in devices]
    used = [span.most for span in spans if span is not None and span.most is not None]
    if used:
        yield f"{units.size(sum(used))} in use"


def _energy(devices: Sequence[DeviceReceipt]) -> Iterable[str]:
    # the energy of an instance is not told apart from its GPU's
    known = [device.span for device in devices if device.span.device.startswith("gpu:")]
    joules = [
        device.energy_joules for device in known if device.energy_joules is not None
    ]
    if not joules or len(joules) < len(known):
        yield "energy unknown"
        return
    counted = all(device.energy_basis == "counter" for device in known)
    yield f"{'' if counted else '≈ '}{units.energy(sum(joules))}"


def _conditions(devices: Sequence[DeviceReceipt]) -> Iterable[str]:
    """The worst share of each condition over the GPUs, in their order."""
    worst: dict[str, float] = {}
    for device in devices:
        for condition in device.span.conditions:
            worst[condition.name] = max(
                worst.get(condition.name, 0.0), condition.share_ratio
            )
    for name, share in worst.items():
        if share >= _WORTH_TELLING_RATIO:
            yield f"{name} {units.share(share)}"


def _change(devices: Sequence[DeviceReceipt], previous: Receipt) -> Iterable[str]:
    now, before = (_mean(run, "sm_active_ratio") for run in (devices, previous.devices))
    if now is None or before is None or previous.wall_ms < _ESTIMATED_MS:
        return
    points = round(100 * (now - before))
    if points:
        unit = "point" if abs(points) == 1 else "points"
        yield f"SM {points:+d} {unit} against the run before"


def _mean(devices: Sequence[DeviceReceipt], name: str) -> float | None:
    spans = [device.span.metrics.get(name) for device in devices]
    means = [span.mean for span in spans if span is not None and span.mean is not None]
    return sum(means) / len(means) if means else None


def _is_read(device: DeviceReceipt) -> bool:
    return _covered(device.span) > 0


def _covered(span: DeviceSpan) -> float:
    """Share of the time that is covered, by the metric that is read best."""
    return max((metric.covered_ratio for metric in span.metrics.values()), default=0.0)
