"""CUDA_VISIBLE_DEVICES is read as CUDA reads it."""

from collections.abc import Callable

import pytest

from tests.stub_nvml import StubNvml
from warpbook_hub.grader.gpus import devices
from warpbook_labs.errors import NoGpu
from warpbook_labs.gpu.gpu import find_gpu
from warpbook_monitors.nvml.visible import visible_gpus


@pytest.mark.parametrize(
    ("allowed", "wanted"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("1", [1]),
        (" 2 , 0 ", [2, 0]),
        ("01", [1]),
        ("1;0", [1]),
        # up to what is no GPU
        ("0,-1,1", [0]),
        ("-1", []),
        ("0,7,1", [0]),
        ("0,x,1", [0]),
        ("0,{1}", [0]),
        ("NoDevFiles", []),
        ("all", []),
        # twice is none
        ("1,1", []),
        ("0,1,0", []),
        # a UUID; with the beginning alone it could be several
        ("{1}", [1]),
        ("{2},{0}", [2, 0]),
        ("{1},{1:12}", [1]),
        ("{1:12}", []),
        ("GPU-", []),
        ("{1},1", [1]),
        ("GPU-ffffffff,{0}", []),
        # no whole GPU
        ("MIG-377e0049-554c-540b-93c6-d0976f8426cb", []),
        ("MIG-{0}/1/0", []),
    ],
)
def test_of_three_gpus(
    make_stub_nvml: Callable[..., StubNvml],
    monkeypatch: pytest.MonkeyPatch,
    allowed: str | None,
    wanted: list[int],
) -> None:
    make_stub_nvml("h200", "h200", "t4")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    uuids = [gpu.uuid for gpu in visible_gpus()]
    if allowed is not None:
        for at, uuid in enumerate(uuids):
            allowed = allowed.replace(f"{{{at}}}", uuid)
            allowed = allowed.replace(f"{{{at}:12}}", uuid[:12])
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    chosen = [uuids[at] for at in wanted]
    assert [gpu.uuid for gpu in visible_gpus()] == chosen
    assert [device.uuid for device in devices()] == chosen
    if chosen:
        assert find_gpu().uuid == chosen[0]
    else:
        with pytest.raises(NoGpu, match="CUDA_VISIBLE_DEVICES"):
            find_gpu()


@pytest.mark.parametrize(
    ("allowed", "wanted"),
    [("GPU-57ab", 1), ("GPU-57ab0000-0000", 1), ("GPU-57ab,GPU-57", 0), ("57ab", 0)],
)
def test_a_uuid_may_be_cut_short(
    stub_nvml: StubNvml, monkeypatch: pytest.MonkeyPatch, allowed: str, wanted: int
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    assert len(visible_gpus()) == len(devices()) == wanted
