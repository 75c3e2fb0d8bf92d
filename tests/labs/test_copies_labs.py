"""Labs on copies: each mistake is told as what it is, at its line."""

from __future__ import annotations

import pytest

from tests.lab_checks import check_all
from warpbook_labs.cases.sampling import DrawnCase, public_cases
from warpbook_labs.engines.simulated.judging.calls.rates import PINNED_BYTES_PER_S
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.loader import load
from warpbook_labs.results.check import CaseResult
from warpbook_labs.sandbox.work import Limits

COPIES = load(CATALOGUE / "streams" / "host_device_copies")
OVERLAP = load(CATALOGUE / "streams" / "copy_compute_overlap")
ZERO_COPY = load(CATALOGUE / "streams" / "zero_copy")
LABS = (COPIES, OVERLAP, ZERO_COPY)

TOO_MUCH = "To the GPU should go"
ORDINARY = "All but the gains"
IN_COPY, WORK, OUT_COPY = "inputs[slot].copy_(", "work(", "out[piece].copy_("
WAITS, ROWS = "The host should wait for nothing", "Over the link should go the rows"
ENGINES = "Copies in, work and copies out should go on"

#: a wrong solution, the public case that shows it, how what is told begins, and a part
#: of the line that is blamed
MISTAKES: dict[str, list[tuple[str, int, str, str]]] = {
    "host-device-copies": [
        ("a_slice_at_once", 0, ORDINARY, ""),
        ("all_of_it", 0, TOO_MUCH, ""),
        ("block_by_block", 0, "Each copy costs microseconds", ""),
        ("floats_over_the_link", 0, TOO_MUCH, ""),
        ("gathers_on_the_host", 1, "The link should be busy", ""),
        ("keeps_the_gpu_busy_for_nothing", 1, "The link should be busy", ""),
        ("reads_before_it_is_there", 0, "host read too early", "non_blocking=True"),
        ("result_through_ordinary_memory", 0, ORDINARY, ""),
        ("stays_on_the_processor", 0, TOO_MUCH, ""),
        ("the_first_ones", 0, "out[", ""),
        ("whole_rows", 0, TOO_MUCH, ""),
    ],
    "copy-compute-overlap": [
        ("a_stream_for_each_chunk", 0, "The GPU has room for three chunks", ""),
        ("computes_before_it_arrived", 0, "race", WORK),
        ("copies_before_it_is_computed", 0, "race", OUT_COPY),
        ("events_on_the_wrong_stream", 0, "race", WORK),
        ("frees_a_slot_too_early", 0, "race", IN_COPY),
        ("host_waits_for_each_chunk", 1, ENGINES, ""),
        ("keeps_an_engine_busy_for_nothing", 1, ENGINES, ""),
        ("new_memory_for_each_chunk", 0, "released too early", ".to("),
        ("overwrites_what_is_still_read", 0, "race", IN_COPY),
        ("result_has_not_left_yet", 0, "race", WORK),
        ("result_through_pageable_memory", 0, "Results should go straight", ""),
        ("room_for_everything", 0, "The GPU has room for three chunks", ""),
        ("waits_for_the_event_before_last", 0, "race", WORK),
        ("waits_for_the_last_chunk", 1, ENGINES, ""),
        ("works_again_and_again", 1, f"{ENGINES} at the same time, and nothing", ""),
        ("works_where_it_copies", 1, ENGINES, ""),
    ],
    "zero-copy": [
        ("a_copy_for_each_row", 0, WAITS, ""),
        ("column_by_column", 0, ROWS, ""),
        ("computes_on_the_host", 0, WAITS, ""),
        ("does_not_wait_for_its_stream", 0, "race", "scaled("),
        ("gathers_on_the_host", 0, WAITS, ""),
        ("keeps_the_first_rows", 0, "In call 2: out[", ""),
        ("reads_twice", 0, ROWS, ""),
        ("scales_every_row", 0, ROWS, ""),
        ("the_whole_table", 0, ROWS, ""),
    ],
}


def case_result(loaded: LoadedLab, source: str, case: DrawnCase) -> CaseResult:
    """Check one case; a simulated GPU needs neither a GPU nor PyTorch."""
    limits = Limits(processor_s=50, asleep_s=60.0)
    return check_all(loaded, source, [case], limits).cases[0]


@pytest.mark.parametrize(
    ("loaded", "name", "shown_by", "reason", "blamed"),
    [
        pytest.param(loaded, *mistake, id=mistake[0])
        for loaded in LABS
        for mistake in MISTAKES[loaded.lab.id]
    ],
)
def test_a_mistake_is_told_as_what_it_is(
    loaded: LoadedLab, name: str, shown_by: int, reason: str, blamed: str
) -> None:
    source = loaded.wrong[f"{name}.py"]
    result = case_result(loaded, source, public_cases(loaded.lab)[shown_by])
    assert not result.passed
    assert result.message.startswith(reason)
    if blamed:
        line = result.findings[0].line
        assert line is not None and blamed in source.splitlines()[line - 1]


@pytest.mark.parametrize("loaded", LABS, ids=lambda one_lab: one_lab.lab.id)
def test_every_wrong_solution_has_its_reason_above(loaded: LoadedLab) -> None:
    names = {f"{name}.py" for name, *_ in MISTAKES[loaded.lab.id]}
    assert names == set(loaded.wrong)


def test_a_slice_of_pinned_memory_with_gaps_crosses_as_ordinary_memory() -> None:
    case = public_cases(COPIES.lab)[0]
    one, by_rows = (
        case_result(COPIES, source, case).host_counts
        for source in (COPIES.wrong["a_slice_at_once.py"], COPIES.reference)
    )
    assert one is not None and by_rows is not None
    assert one.h2d_bytes == by_rows.h2d_bytes
    piece_bytes = case.sizes["wanted"] * case.sizes["blocks"] * 256
    assert one.pageable_bytes - by_rows.pageable_bytes == piece_bytes


def test_the_host_goes_on_while_what_it_asked_for_is_copied() -> None:
    result = case_result(COPIES, COPIES.reference, public_cases(COPIES.lab)[1])
    counts = result.host_counts
    assert counts is not None and result.passed
    # only the gains, which lie in ordinary memory, are waited for
    assert counts.synchronizations == 1
    assert counts.host_ns < counts.copy_ns / 2


@pytest.fixture(scope="module")
def overlapped() -> CaseResult:
    """Run the reference on chunks that fill the link."""
    return case_result(OVERLAP, OVERLAP.reference, public_cases(OVERLAP.lab)[1])


def test_a_pipeline_takes_as_long_as_its_longest_part_and_one_stream_as_all(
    overlapped: CaseResult,
) -> None:
    together = overlapped.host_counts
    in_turn = case_result(
        OVERLAP, OVERLAP.starter, public_cases(OVERLAP.lab)[1]
    ).host_counts
    assert together is not None and in_turn is not None
    parts_ns = in_turn.copy_ns + in_turn.compute_ns
    assert in_turn.total_ns > parts_ns
    assert together.total_ns < parts_ns * 0.6
    # nobody is faster than the link
    assert together.total_ns > together.h2d_bytes / PINNED_BYTES_PER_S * 1e9


def test_copies_in_both_directions_and_work_are_drawn_at_the_same_time(
    overlapped: CaseResult,
) -> None:
    bars = overlapped.bars
    # at some time that one of them begins, all are at work
    at_once = [
        {bar.engine for bar in bars if bar.begin_ns <= moment.begin_ns < bar.end_ns}
        for moment in bars
    ]
    assert any({"h2d", "compute", "d2h"} <= engines for engines in at_once)


def test_rows_that_a_kernel_reads_from_the_host_are_counted_and_nobody_waits() -> None:
    case = public_cases(ZERO_COPY.lab)[1]
    by_kernel = case_result(ZERO_COPY, ZERO_COPY.reference, case).host_counts
    by_host = case_result(ZERO_COPY, ZERO_COPY.starter, case).host_counts
    assert by_kernel is not None and by_host is not None
    assert by_kernel.h2d_bytes == by_host.h2d_bytes == 4 * 2048 * 256
    assert (by_kernel.copies, by_kernel.synchronizations) == (0, 0)
    # the row numbers go to the host, and the rows come
    assert by_host.copies == 2
    assert by_host.pageable_bytes == 4 * 2048 * 256 + 8 * 2048
    assert by_host.total_ns > 5 * by_kernel.total_ns
    # nobody is faster than the link
    assert by_kernel.total_ns > by_kernel.h2d_bytes / PINNED_BYTES_PER_S * 1e9
