"""Windows of real H200s under labelled work, and what can't be judged."""

import msgspec
import pytest

from tests.monitors.verdicts.labelled_phases import name
from warpbook_monitors.frames import Device, Metric
from warpbook_monitors.recordings.recording import read_recording
from warpbook_monitors.recordings.replay import SHIPPED
from warpbook_monitors.verdicts.verdict import Verdict, judge

RECORDING = read_recording(SHIPPED)


def judged(label: str, device: int = 0) -> Verdict:
    """The verdict over the middle of a labelled phase of the shipped recording."""
    rows = [
        reading.values
        for frame in RECORDING.frames
        if frame.label == label
        for reading in frame.readings
        if reading.device == device
    ]
    assert len(rows) >= 30
    return judge(RECORDING.hello.devices[device], rows[15:-2])


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("idle", "idle"),
        ("bf16 matmul", "compute-bound: tensor cores"),
        ("fp32 matmul", "compute-bound: CUDA cores"),
        ("elementwise", "memory-bound"),
        ("tiny kernels in a loop", "host-bound"),
        ("the same as a CUDA graph", "few-multiprocessors"),
        ("pinned host-to-device copy", "transfer-bound"),
        ("training, bf16", "mixed"),
        ("all-reduce", "communication-bound"),
        ("idle again", "idle"),
    ],
)
def test_each_labelled_workload_is_recognised(label: str, kind: str) -> None:
    verdict = judged(label)
    assert (name(verdict), bool(verdict.sentence), bool(verdict.rule)) == (
        kind,
        True,
        True,
    )


def test_the_rule_shows_the_figures_that_decided() -> None:
    assert judged("bf16 matmul").rule == "Tensor active 94 %, above 60 %"
    copy = judged("pinned host-to-device copy")
    assert "to the GPU" in copy.sentence
    assert "PCIe at 94 % of generation 5 x16" in copy.rule


@pytest.mark.parametrize(
    ("sm_active", "rule_words"),
    [
        (0.0, "SM active 0 %"),
        (0.000379, "SM active <0.1 %"),
        (0.00379, "SM active 0.4 %"),
    ],
)
def test_a_rule_is_no_more_exact_than_a_reading(
    sm_active: float, rule_words: str
) -> None:
    metrics = (
        Metric("gpu_utilization_ratio", "ratio", "GPU utilization (NVML)"),
        Metric("sm_active_ratio", "ratio", "SM active"),
    )
    gpu = Device("gpu:0", "gpu", "NVIDIA H200", 0, "live", metrics)
    assert rule_words in judge(gpu, [(0.0, sm_active)] * 10).rule


def test_a_gpu_that_spins_in_a_barrier_is_not_called_busy() -> None:
    verdict = judged("elementwise", device=1)
    assert verdict.kind == "few-multiprocessors"
    assert "waits for another GPU" in verdict.sentence


def test_without_gpm_only_idle_can_be_told() -> None:
    metrics = (Metric("gpu_utilization_ratio", "ratio", "GPU utilization (NVML)"),)
    gpu = Device("gpu:0", "gpu", "NVIDIA A100", 0, "live", metrics)
    assert judge(gpu, [(0.0,)] * 10).kind == "idle"
    busy = judge(gpu, [(1.0,)] * 10)
    assert busy.kind == "unknown"
    assert "no GPM" in busy.sentence


@pytest.mark.parametrize(
    ("sm_active", "tensor", "kind"),
    [
        (0.001, 0.0, "idle"),
        (0.9, 0.8, "compute-bound: tensor cores"),
        (0.2, 0.1, "unknown"),
        (None, None, "unknown"),
    ],
)
def test_a_mig_instance_is_judged_by_what_it_has(sm_active, tensor, kind) -> None:
    metrics = tuple(
        Metric(name, "ratio", name)
        for name in ("sm_active_ratio", "tensor_active_ratio")
    )
    instance = Device("mig:1", "mig", "H200 MIG 1g.18gb", None, "live", metrics)
    verdict = judge(instance, [(sm_active, tensor)] * 10)
    assert (name(verdict), bool(verdict.sentence)) == (kind, True)


def test_a_gpu_in_parts_points_to_its_instances() -> None:
    metrics = (Metric("power_watts", "watts", "Power"),)
    facts = {"mig_mode": "enabled"}
    gpu = Device("gpu:0", "gpu", "NVIDIA H200", 0, "live", metrics, facts)
    verdict = judge(gpu, [(100.0,)] * 10)
    assert verdict.kind == "unknown"
    assert "instances" in verdict.sentence


@pytest.mark.parametrize("rows", [[], [(0.5,)] * 4, [(None,)] * 50])
def test_too_few_readings_are_not_judged(rows) -> None:
    metrics = (Metric("gpu_utilization_ratio", "ratio", "GPU utilization (NVML)"),)
    gpu = Device("gpu:0", "gpu", "A GPU", 0, "live", metrics)
    assert judge(gpu, rows).kind == "unknown"


@pytest.mark.parametrize("capability", [None, "8.6"])
def test_a_link_of_unknown_speed_is_not_judged_by_it(capability) -> None:
    # NVLinks of workstation cards are slower than an A100's
    known = RECORDING.hello.devices[0]
    facts = {**known.facts, "compute_capability": capability} if capability else {}
    device = msgspec.structs.replace(known, facts=facts)
    rows = [f.readings[0].values for f in RECORDING.frames if f.label == "all-reduce"]
    assert judge(device, rows).kind == "few-multiprocessors"
