"""The limits of a GPU: kept for a session, and what they say of a piece of work."""

from pathlib import Path
from time import time

import msgspec
import pytest

from warpbook_labs.gpu.limit_card import SITTING_S, NoLimitCard, limit_card
from warpbook_labs.results.measurements import LimitCard

CARD = LimitCard(
    gpu="NVIDIA H200",
    uuid="GPU-5",
    driver="580.1",
    measured_ms=0,
    copy_bytes_per_s=4e12,
    read_bytes_per_s=4.4e12,
    host_to_device_bytes_per_s=55e9,
    device_to_host_bytes_per_s=54e9,
    launch_latency_ns=6_000,
    flops_per_s={"float32": 50e12},
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "warpbook" / "limit_cards"


def keep(folder: Path, age_s: float, content: bytes | None = None) -> LimitCard:
    folder.mkdir(parents=True)
    card = msgspec.structs.replace(CARD, measured_ms=(time() - age_s) * 1000)
    (folder / "GPU-5-580.1.json").write_bytes(content or msgspec.json.encode(card))
    return card


def test_a_card_of_this_session_is_used_again(folder: Path) -> None:
    card = keep(folder, age_s=60)
    assert limit_card("GPU-5", "580.1") == card


@pytest.mark.parametrize(
    ("age_s", "content"),
    [(SITTING_S + 1, None), (-60, None), (0, b"{"), (0, b"\xff"), (0, b"[1]")],
)
def test_an_old_one_or_no_card_is_not(
    folder: Path, age_s: float, content: bytes | None
) -> None:
    keep(folder, age_s, content)
    with pytest.raises(NoLimitCard, match=r"could not be measured: .*driver"):
        limit_card("GPU-5", "580.1")


def test_another_driver_is_another_card(folder: Path) -> None:
    keep(folder, age_s=60)
    with pytest.raises(NoLimitCard):
        limit_card("GPU-5", "590.0")


@pytest.mark.parametrize(
    ("size_bytes", "flops", "dtype", "right_ns"),
    [
        (4e9, 1e9, "float32", 1e6),
        (4e6, 5e10, "float32", 1e6),
        (4e9, 1e9, "int32", 1e6),
        (4e9, 5e9, "int32", None),
        (4e9, 0, "uint8", 1e6),
    ],
    ids=["memory", "arithmetic", "unknown-but-memory", "unknown", "moves-only"],
)
def test_the_least_time_of_a_piece_of_work(
    size_bytes: float, flops: float, dtype: str, right_ns: float | None
) -> None:
    assert CARD.fastest_ns(size_bytes, flops, dtype) == (
        right_ns if right_ns is None else pytest.approx(right_ns)
    )
