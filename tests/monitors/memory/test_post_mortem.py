"""A failed allocation: what the messages of the libraries tell, and the advice."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from warpbook_monitors.memory.holders import DeviceHolders, Holder
from warpbook_monitors.memory.post_mortem import FailedAllocation, explain, parse

GIB = 2**30
#: as torch 2.13 writes it
TORCH = (
    "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 1 has a total capacity of "
    "139.80 GiB of which 3.10 GiB is free. Process 4711 has 5.00 GiB memory in use. "
    "Including non-PyTorch memory, this process has 131.70 GiB memory in use. Of the "
    "allocated memory 124.00 GiB is allocated by PyTorch, and 6.50 GiB is reserved by "
    "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
    "documentation for Memory Management  "
    "(https://docs.pytorch.org/docs/stable/notes/cuda.html"
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
)
OLD_TORCH = (
    "CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 15.78 GiB total "
    "capacity; 14.00 GiB already allocated; 100.50 MiB free; 14.50 GiB reserved in "
    "total by PyTorch) If reserved memory is >> allocated memory try setting "
    "max_split_size_mb to avoid fragmentation."
)
CUPY = (
    "Out of memory allocating 8,000,000,512 bytes (allocated so far: 3,000,000,000 "
    "bytes)."
)
JAX = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes."


def test_torchs_message_is_understood() -> None:
    assert parse(TORCH) == FailedAllocation(
        asked_bytes=20 * GIB,
        free_bytes=round(3.1 * GIB),
        total_bytes=round(139.8 * GIB),
        allocated_bytes=124 * GIB,
        reserved_bytes=round(130.5 * GIB),
        device_index=1,
    )


def test_the_messages_of_others_are_understood() -> None:
    old = parse(OLD_TORCH)
    assert (old.asked_bytes, old.device_index) == (GIB // 2, 0)
    assert old.free_bytes == round(100.5 * 2**20)
    assert old.reserved_bytes == round(14.5 * GIB)
    assert parse(CUPY) == FailedAllocation(
        asked_bytes=8_000_000_512, allocated_bytes=3_000_000_000
    )
    assert parse(JAX) == FailedAllocation(asked_bytes=8 * GIB)


@pytest.mark.parametrize(
    "message",
    [
        "",
        "CUDA error: out of memory",
        "Tried to allocate ∞ GiB",
        "Tried to allocate , GiB",
        f"Tried to allocate {'9' * 400} GiB",
        "Tried to allocate 99,999,999,999 TiB",
        "9" * 10**6,
    ],
)
def test_what_a_message_does_not_tell_is_unknown(message: str) -> None:
    assert parse(message) == FailedAllocation()


FAILED = FailedAllocation(
    asked_bytes=20 * GIB,
    free_bytes=3 * GIB,
    total_bytes=140 * GIB,
    allocated_bytes=10 * GIB,
    reserved_bytes=11 * GIB,
)
OURS = Holder("kernel", "mine.ipynb", 12 * GIB, (1,), "k-1", execution_state="busy")
IDLE = Holder(
    "kernel", "old.ipynb", 60 * GIB, (2,), "k-2", execution_state="idle", idle_s=7300.0
)
BUSY = replace(IDLE, execution_state="busy", idle_s=None)
PROGRAM = Holder("program", "python train.py", 80 * GIB, (77,))
OTHERS = Holder("other_users", "other users", 90 * GIB)


def said(failed: FailedAllocation, *holders: Holder) -> str:
    return explain(failed, "GPU 0 (NVIDIA H200)", DeviceHolders(holders, 0), "k-1")


@pytest.mark.parametrize(
    ("holders", "words"),
    [
        (
            (PROGRAM, IDLE, OURS),
            "“old.ipynb” holds 60.0 GiB and has run nothing for 2 h",
        ),
        ((PROGRAM, BUSY, OURS), "python train.py (process 77) holds 80.0 GiB"),
        ((BUSY, OURS), "“old.ipynb” holds 60.0 GiB and is at work"),
        ((OTHERS, OURS), "Other users hold 90.0 GiB"),
        (
            (replace(OURS, used_bytes=120 * GIB),),
            "This notebook itself holds most of it",
        ),
        # too little to help
        (
            (replace(IDLE, used_bytes=GIB), OURS),
            "This notebook itself holds most of it",
        ),
        ((replace(OTHERS, used_bytes=None),), "does not report how much"),
        ((), "It is not known here who else holds memory"),
    ],
)
def test_the_advice_fits_who_holds_the_memory(
    holders: tuple[Holder, ...], words: str
) -> None:
    sentence = said(FAILED, *holders)
    assert sentence.startswith(
        "20.0 GiB was asked for on GPU 0 (NVIDIA H200), where 3.00 GiB of 140 GiB was "
        "free."
    )
    assert words in sentence


def test_fragments_are_told_before_others_are_blamed() -> None:
    fragmented = replace(FAILED, reserved_bytes=40 * GIB)
    assert "expandable_segments" in said(fragmented, OTHERS, OURS)


def test_more_than_the_gpu_has_is_nobodys_fault() -> None:
    assert "No GPU of this size" in said(replace(FAILED, asked_bytes=200 * GIB), OTHERS)


def test_a_limit_of_the_programs_own_is_told() -> None:
    assert "a limit set by the program" in said(replace(FAILED, free_bytes=100 * GIB))


def test_without_any_figure_nothing_is_made_up() -> None:
    sentence = explain(FailedAllocation(), None, None, "")
    assert sentence == (
        "Memory was asked for on the GPU. It is not known here who else holds memory; "
        "nvidia-smi lists the processes."
    )
