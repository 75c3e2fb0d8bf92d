"""The corpus is well-formed, and a sample of it is judged as is known."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from tests.corpus.causes import CAUSES
from tests.corpus.entries import BadCorpus, Entry, read_all, read_folder
from tests.corpus.judging import Judged, is_unsupported, judge
from tests.corpus.report import page
from tests.corpus.tally import LANGUAGES, tallied
from warpbook_labs.lab.loader import load_all
from warpbook_labs.results.check import CaseResult, CheckResult
from warpbook_labs.results.device import DeviceResult

PAGE = Path(__file__).parents[2] / "docs" / "corpus.md"
#: right ones of every language, in styles that an interpreter may stumble over
RIGHT = (
    "reduction-and-scan/look_back",
    "tiled-transpose/shuffled_in_registers",
    "matmul/warp_tiles",
    "thread-and-block/tile_of_two_sides",
    "copy-compute-overlap/two_in_three_out",
    "cuda-graphs/captured_when_needed",
    "fix-the-stream/one_chunk_behind",
    "mixed-precision/gradients_asked_for",
    "roofline/with_match",
    "thread-and-block/file_of_a_host",
    "vector-add/file_of_a_host",
    "vector-add/instance_in_a_namespace",
)
#: wrong ones, and whether a message must name line and cause, or the cause alone
WRONG = {
    "vector-add/one_too_many": True,
    "vector-add/blocks_beyond_their_bounds": False,
    "vector-add/clusters_of_a_grid_that_has_none": False,
    "vector-add/fmaxf_loses_nan": True,
    "vector-add/more_constants_than_there_is_room_for": False,
    "reduction-and-scan/no_syncwarp_behind_the_write": True,
    "reduction-and-scan/ticket_without_a_fence": True,
    "matmul/no_second_barrier": True,
    "matmul/float4_of_any_row": True,
    "launch-bounds/shuffles_from_lanes_that_left": True,
    "thread-and-block/store_without_mask": True,
    "fix-the-stream/no_record_stream": True,
    "cuda-graphs/weights_are_let_go": True,
    "host-device-copies/slice_with_gaps_at_once": True,
    "occupancy/registers_without_units": False,
    "parallelism-by-hand/bounds_are_lifted": True,
    "parallelism-by-hand/terms_in_a_class": False,
    "parallelism-by-hand/whole_gradients_of_a_frame": False,
}


@pytest.fixture(scope="module")
def entries() -> dict[str, Entry]:
    return {entry.title: entry for entry in read_all()}


def test_every_difference_applies_and_every_named_line_is_there(
    entries: dict[str, Entry],
) -> None:
    # `read_all` refuses an edit or a line that is not there exactly once
    assert len(entries) >= 300
    for title, entry in entries.items():
        assert entry.about and "\n" not in entry.about, title
        assert entry.is_right or (entry.lines and entry.cause), title
        if entry.language in ("cuda", "triton"):
            assert "launch: " in entry.source, title
    assert {entry.cause for entry in entries.values()} == {"", *CAUSES}


def test_no_two_sources_of_a_lab_are_alike(entries: dict[str, Entry]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for title, entry in entries.items():
        # without its first comment, in which a base says what it is
        words = "".join(entry.source.partition("\n")[2].split())
        other = seen.setdefault((entry.lab, words), title)
        assert other == title


def test_every_lab_has_right_and_wrong_sources_and_none_of_its_own(
    entries: dict[str, Entry],
) -> None:
    for lab in load_all().values():
        mine = [entry for entry in entries.values() if entry.lab == lab.lab.id]
        assert {entry.is_right for entry in mine} == {True, False}, lab.lab.id
        known = {
            "".join(source.split()) for source in (*lab.correct.values(), lab.starter)
        }
        assert not known & {"".join(entry.source.split()) for entry in mine}


def test_there_are_as_many_as_the_page_says(entries: dict[str, Entry]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for language, title in LANGUAGES.items():
        row = re.search(rf"^\| {re.escape(title)} \|(.*)\|$", text, re.MULTILINE)
        assert row, title
        numbers = [int(word) for word in row[1].split("|")]
        mine = [entry for entry in entries.values() if entry.language == language]
        assert sum(entry.is_right for entry in mine) >= numbers[0], title
        assert sum(not entry.is_right for entry in mine) >= numbers[4], title


@pytest.mark.parametrize("title", RIGHT)
def test_a_right_source_passes(entries: dict[str, Entry], title: str) -> None:
    judged = judge(entries[title])
    assert judged.verdict == "passed", judged.message


@pytest.mark.parametrize("title", WRONG)
def test_a_wrong_source_is_caught_with_its_cause(
    entries: dict[str, Entry], title: str
) -> None:
    judged = judge(entries[title])
    assert judged.verdict == "failed", judged.message
    assert judged.has_cause, judged.message
    assert judged.has_line == WRONG[title], judged.message


def test_what_is_not_known_here_is_told_apart_from_what_failed(
    entries: dict[str, Entry],
) -> None:
    words = "This interpreter does not know `mma.sync` (line 3 of the source)."
    case = CaseResult("a case", False, False, words)
    unknown = CheckResult("vector-add", "unsupported", words, (case,))
    assert is_unsupported(unknown)
    # a GPU knows what it is
    there = DeviceResult("A GPU", "sm_90", right=0, of=1)
    assert not is_unsupported(msgspec.structs.replace(unknown, device=there))
    right = entries["vector-add/cached_loads"]
    broken = Entry("vector-add", "cuda", "broken", True, "A typo.", right.source + "}")
    assert judge(broken).verdict == "failed"


def test_the_page_hides_no_misjudged_source(entries: dict[str, Entry]) -> None:
    right, wrong = (
        entries["vector-add/cached_loads"],
        entries["vector-add/max_loses_nan"],
    )
    judged = [
        Judged(right, "failed", "a <b> | c", False, False, 0.1),
        Judged(wrong, "passed", "All right.", False, False, 0.1),
    ]
    text = page(judged, use_gpu=False)
    assert "`vector-add/cached_loads`" in text and "a &lt;b> \\| c" in text
    assert "`vector-add/max_loses_nan`" in text
    counted = tallied(judged, use_gpu=False)["all"]
    assert (counted.right_rejected, counted.wrong_passed) == (1, 1)


def test_a_difference_that_does_not_apply_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "vector_add"
    folder.mkdir()
    (folder / "a.cu").write_text("// A kernel.\nint x;\n")
    entry = '[[wrong]]\nname = "b"\nbase = "a"\nreason = "c"\ncause = "race"\n'
    (folder / "edits.toml").write_text(
        f'{entry}lines = ["x"]\nedits = [{{ old = "y", new = "z" }}]\n'
    )
    with pytest.raises(BadCorpus, match="0 times"):
        list(read_folder(folder))
