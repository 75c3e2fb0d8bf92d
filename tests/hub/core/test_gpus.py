"""Which GPUs a grader has, asked of a driver that is a stub."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.stub_nvml import StubNvml
from warpbook_hub.grader.gpus import devices, energy_mj


def test_all_whole_gpus_are_named_or_those_that_are_allowed(
    make_stub_nvml: Callable[..., StubNvml], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_stub_nvml("h200", "a100")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    both = devices()
    assert len(both) == 2 and len({device.uuid for device in both}) == 2
    for allowed in ("1", both[1].uuid):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
        assert devices() == both[1:]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert devices() == ()


def test_energy_is_told_or_unknown(stub_nvml: StubNvml) -> None:
    [device] = devices()
    used_mj = energy_mj(device.uuid)
    assert used_mj is not None and used_mj >= 0
    assert energy_mj("") is None and energy_mj("GPU-nowhere") is None
