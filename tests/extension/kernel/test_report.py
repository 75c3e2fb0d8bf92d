"""The report: readable, escaped, and honest about what is not known."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from warpbook.kernel.runs.profile import Notice, Profile
from warpbook.reports.labs import LABS
from warpbook_labs.lab.loader import load_all
from warpbook_monitors import units
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.cell_profile import (
    CellProfile,
    Completeness,
    KernelRow,
    LineRow,
)
from warpbook_profiler.model.figures import CellVerdict, Topic
from warpbook_profiler.model.trials import Edited
from warpbook_profiler.stalls.reasons import stall_reasons
from warpbook_profiler.verdict.analysis import analyse

TRACES = Path(__file__).parents[2] / "data" / "traces"
HOSTILE = "</td><script>alert('1')</script>\"&\x1b[31m\n<img src=http://x>"


def profile(trace: str = "tiny_kernels", **changes: Any) -> Profile:
    figures = analyse(*read_chrome_trace(str(TRACES / f"{trace}.json.gz")))
    return Profile(msgspec.structs.replace(figures, **changes), "train()")


def bundle(shown: Profile | Notice) -> dict[str, str]:
    return shown._repr_mimebundle_()


class Tags(HTMLParser):
    """Collects the elements and checks that they nest."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        #: of the foldouts that are within no other
        self.folded: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        assert not {name for name, _ in attrs} & {"src", "href", "onerror", "onload"}

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open[-1:] == ["summary"] and self.open.count("details") == 1:
            self.folded.append(data)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_headline_holds_the_figures() -> None:
    text = bundle(profile())["text/plain"]
    assert text.startswith("launch-bound: The GPU idled 42 % of the time")
    assert re.search(r"Time +2.97 to 9.04 ms without the profiler, estimated", text)
    # of the window that the file's profiler recorded
    assert "NVIDIA H200, busy for 803 µs (19 %)" in text
    assert re.search(r"Kernels +800 in 803 µs", text)
    assert re.search(r"Launches +800, 3.61 ms in the calls; 800 seen", text)
    assert "profiler's own work" in text


@pytest.mark.parametrize(
    "trace", sorted(TRACES.glob("*.json.gz")), ids=lambda p: p.stem
)
def test_sentences_and_figures_write_percentages_alike(trace: Path) -> None:
    text = bundle(profile(trace.name.removesuffix(".json.gz")))["text/plain"]
    assert re.search(r"\d %", text)
    assert not re.search(r"\d%", text)


def test_copies_show_pinned_size_and_rate() -> None:
    text = bundle(profile("pinned_h2d"))["text/plain"]
    assert re.search(r"HtoD \(Pinned.* 8 .*19.3 ms  1.00 GiB  55.5 GB/s", text)


def test_the_html_says_the_same_and_is_scoped() -> None:
    html = bundle(profile("ddp_rank0"))["text/html"]
    style = html[html.index("<style>") + 7 : html.index("</style>")]
    for selector in re.findall(r"([^{}]+)\{", style):
        for part in selector.split(","):
            assert part.strip().startswith((".warpbook-report", ".warpbook-table"))
    assert "NVIDIA H200, busy" in html
    assert "url(" not in html and "http" not in html and "@import" not in html
    Tags(html)


def test_every_technique_and_reason_has_a_lab_of_the_catalogue() -> None:
    assert set(LABS) == set(get_args(Topic))
    of_reasons = {one.lab for one in stall_reasons().values() if one.lab is not None}
    assert {*LABS.values(), *of_reasons} <= set(load_all())


@pytest.mark.parametrize("form", ["text/plain", "text/html"])
def test_every_group_of_figures_is_there(form: str) -> None:
    train = bundle(profile("train_fp32"))[form]
    for title in (
        *(
            "What explains the time",
            "As recorded, with the profiler",
            "Launches and waits",
        ),
        *("Copies and communication", "GPU work by operators"),
        *("Kernels by their limit", "Stream idle time by cause"),
    ):
        assert title in train
    # what is left without the cause, and who teaches it
    assert "same dtype and bytes: 12.1 ms at best. Lab: mixed-precision." in train
    assert "48.4 TFLOP/s" in train and "FP32 cores" in train
    ddp = bundle(profile("ddp_rank0"))[form]
    assert "Communication" in ddp and "3.14 ms" in ddp, "exposed"
    assert "6.98 ms at best. Lab: parallelism-by-hand." in ddp
    assert "not known (no shapes were recorded)" in ddp
    assert "cudaEventSynchronize" in ddp
    assert "Without the profiler" in ddp and "10.7 ms" in ddp


def test_lines_stand_beside_the_code_with_bars_for_their_times() -> None:
    rows = (
        LineRow(1, "x = f(x)  # <b>", 9, 8_000_000, 9, 4_000_000, 0, 0, None),
        LineRow(2, "y = x.item()", 1, 2_000_000, 0, 0, 0, 2_000_000, 1_000_000),
    )
    shown = bundle(profile(lines=rows, lines_cost_ns=500_000))
    assert re.search(r"1  x = f\(x\) .* 9  8.00 ms .*not known", shown["text/plain"])
    html = shown["text/html"]
    code = html[html.index("Lines of the cell") :].partition("</table>")[0]
    widths = re.findall(r'class="warpbook-bar" style="width:(\d+)%"', code)
    assert widths == ["100", "50", "25", "25", "12"]
    assert "recording them took about 500 µs of the time" in shown["text/plain"]
    tags = Tags(shown["text/html"])
    # what was asked for is open, all else is in four foldouts
    code = shown["text/html"].index("Lines of the cell")
    assert code < shown["text/html"].index("What explains the time")
    assert [title for title in tags.folded if title != "Edit"] == [
        "What explains the time",
        "Kernels and operators",
        "Waits, copies and memory",
        "Figures",
    ]


def test_the_page_shows_where_the_time_goes_as_one_bar() -> None:
    shown = profile()
    html = bundle(shown)["text/html"]
    text = Tags(html).text
    verdict = shown.figures.verdict
    assert verdict is not None
    assert "launch-bound" in text and verdict.sentence.partition(".")[0] in text
    widths = re.findall(r"width:([\d.]+)%\" title=", html)
    assert sum(map(float, widths)) == pytest.approx(100, abs=0.5)
    assert re.search(r"Shares are of \d.* without the profiler.*; profiled \d", text)
    # the change is a line of its own
    (change, *_) = shown.figures.changes
    assert f"{change.title} {change.sentence}" in text


def test_without_a_cause_there_is_no_bar() -> None:
    text = bundle(profile(findings=(), verdict=None))["text/html"]
    assert 'warpbook-parts"' not in text


def test_a_verdict_that_is_refused_says_why_and_lists_nothing() -> None:
    why = "The GPU's side of 720 of 800 launches was not recorded"
    shown = profile(
        verdict=CellVerdict("unknown", why),
        findings=(),
        completeness=Completeness(800, 80, 0, ("Times are lower bounds.",)),
    )
    forms = bundle(shown)
    assert "unknown: The GPU" in forms["text/plain"]
    assert "unknown The GPU" in Tags(forms["text/html"]).text
    for text in forms.values():
        assert "720 of 800 launches" in text
        assert "What explains the time" not in text
        assert "720 (90 %)" in text and "Times are lower bounds." in text


def test_hostile_names_are_escaped() -> None:
    shown = profile(
        kernels=(KernelRow(HOSTILE, 1, 1000, 1.0),),
        gpu_name=HOSTILE,
        edited=Edited(HOSTILE, (HOSTILE,), None, HOSTILE, HOSTILE),
    )
    shown.title = HOSTILE
    tags = Tags(bundle(shown)["text/html"]).tags
    assert "script" not in tags and "img" not in tags
    assert "alert" in bundle(shown)["text/plain"]
    assert "\x1b" not in bundle(shown)["text/plain"]


def test_unknown_is_said_and_not_zero() -> None:
    unknown = profile(
        metrics=None,
        gpu_busy_ns=None,
        kernel_calls=None,
        kernel_time_ns=None,
        copy_time_ns=None,
    )
    text = bundle(unknown)["text/plain"]
    assert "NVIDIA H200: not recorded" in text
    assert "busy" not in text


def test_without_a_gpu_the_report_is_of_operators() -> None:
    blind = profile(gpu_name=None, gpu_busy_ns=None, metrics=None, findings=())
    text = bundle(blind)["text/plain"]
    assert "none that PyTorch can use" in text
    assert "Launches" not in text and "aten::add" in text


def test_a_profile_has_its_figures_as_attributes() -> None:
    shown = profile()
    assert shown.kernel_calls == 800
    assert "gpu_busy_ns" in dir(shown)
    with pytest.raises(AttributeError, match="no figure 'fps'"):
        _ = shown.fps
    plain = shown.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain.pop("title") == "train()"
    assert msgspec.convert(plain, CellProfile) == shown.figures


def test_many_rows_are_cut_and_counted() -> None:
    rows = tuple(KernelRow(f"k{n}", 1, 1000, 0.02) for n in range(50))
    shown = bundle(profile(kernels=rows))
    assert "(40 more)" in shown["text/plain"]
    assert "40 more" in shown["text/html"]


def test_a_notice_is_escaped() -> None:
    assert "script" not in Tags(bundle(Notice(HOSTILE))["text/html"]).tags


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        *((0, "0 ms"), (0.0008, "0.80 µs"), (0.9999, "1.00 ms"), (1, "1.00 ms")),
        *((9.996, "10.0 ms"), (123.4, "123 ms"), (1234, "1.23 s"), (999.7, "1.00 s")),
        *((59_990, "1 min 00 s"), (1e7, "2 h 47 min"), (3.6e13, "416,666 d 16 h")),
    ],
)
def test_durations_read_well(milliseconds: float, words: str) -> None:
    assert units.duration(milliseconds) == words


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [
        *((0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (150 * 2**30, "150 GiB")),
        *((2**40, "1.00 TiB"), (5000 * 2**40, "5,000 TiB")),
    ],
)
def test_sizes_read_well(size_bytes: int, words: str) -> None:
    assert units.size(size_bytes) == words


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(0, "0 %"), (1e-6, "< 0.1 %"), (0.003, "0.3 %"), (0.5, "50 %"), (1.39, "139 %")],
)
def test_a_little_is_not_nothing(ratio: float, words: str) -> None:
    assert units.share(ratio) == words
