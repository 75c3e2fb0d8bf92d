"""Reports of planted traces are judged by the rules of real ones."""

from __future__ import annotations

import random
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, get_args

import msgspec
import pytest

from tests.profiler.trace.written import as_bare
from warpbook.reports.labs import LABS
from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.course.notebook import open_lab
from warpbook_labs.course.session import find as find_lab
from warpbook_labs.engines.simulated.cell import SIDE, Cell
from warpbook_labs.engines.simulated.checking import check_host
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.lab.loader import load_all
from warpbook_labs.lab.python.questions import Question
from warpbook_monitors.verdict_kinds import GpuKind
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.report.report import TraceReport, report

LAB = "read-the-trace"

TRACES = Path(__file__).parents[1] / "data" / "traces"


def of_kind(lab: LoadedLab, function: str) -> list[Question]:
    questions = lab.cases.questions(random.Random(5))
    return [question for question in questions if question.function == function]


def test_answers_to_an_earlier_starter_find_the_times_that_they_read(
    lab: LoadedLab,
) -> None:
    reports = [question.arguments["report"] for question in of_kind(lab, "bottleneck")]
    kernels = [row for report in reports for row in report["kernels"]]
    assert kernels
    for row in kernels:
        assert row["time_ms"] * 1e6 == pytest.approx(row["time_ns"])


def test_every_kind_of_verdict_is_planted_in_every_draw(lab: LoadedLab) -> None:
    for seed in range(3):
        questions = lab.cases.questions(random.Random(seed))
        kinds = {
            kind
            for question in questions
            if question.function == "bottleneck"
            for kind in get_args(GpuKind)
            if not lab.cases.judge(question, kind)
        }
        assert kinds == set(get_args(GpuKind))
        functions = [question.function for question in questions]
        assert functions.count("line") >= 4 and functions.count("at_best_ns") >= 8


@pytest.mark.parametrize("seed", range(100, 106))
def test_every_draw_finds_what_is_wrong_and_nothing_where_all_is_right(
    lab: LoadedLab, seed: int
) -> None:
    questions = lab.cases.questions(random.Random(seed))
    for name, source in (lab.correct | lab.wrong).items():
        functions: dict[str, Any] = {"__name__": "answers"}
        exec(compile(source, name, "exec"), functions)
        wrong = []
        for question in questions:
            try:
                answer = functions[question.function](*question.arguments.values())
            except ValueError:
                # no cause is of the kind that it takes for the verdict
                wrong.append(question.about)
            else:
                wrong += [question.about] if lab.cases.judge(question, answer) else []
        assert bool(wrong) == (name in lab.wrong), (name, wrong)


def test_the_cells_have_what_tempts_to_a_wrong_verdict(lab: LoadedLab) -> None:
    reports = {
        question.about: question.arguments["report"]["metrics"]
        for question in of_kind(lab, "bottleneck")
    }
    hidden = reports["copies beside kernels"]
    assert hidden["copy_ns"] > 0.8 * hidden["compute_ns"]
    assert hidden["exposed_copy_ns"] < 0.01 * hidden["copy_ns"]
    assert reports["nothing on the GPU"]["gpu_busy_ns"] == 0
    places = reports["a loader, and launches on one line"]["idle_places"]
    assert max(places, key=lambda place: place["time_ns"])["cause"] == "launching"
    within = reports["copies within the GPU"]
    assert 0 < within["exposed_host_copy_ns"] < 0.3 * within["exposed_copy_ns"]


def test_a_report_tells_no_verdict_and_each_draw_is_another(lab: LoadedLab) -> None:
    reports = [question.arguments["report"] for question in of_kind(lab, "bottleneck")]
    assert all(set(read_report) == {"metrics", "kernels"} for read_report in reports)
    others = lab.cases.questions(random.Random(6))
    assert reports != [question.arguments.get("report") for question in others]


def test_a_wrong_kind_is_told_with_the_share_of_each(lab: LoadedLab) -> None:
    planted = next(
        question
        for question in of_kind(lab, "bottleneck")
        if question.about == "a number read in each step"
    )
    words = lab.cases.judge(planted, "compute-bound")
    assert "expected 'sync-bound'" in words and "sync-bound 5" in words
    line = next(
        question for question in of_kind(lab, "line") if question.about == planted.about
    )
    words = lab.cases.judge(line, -1)
    assert "mostly in aten::item on line" in words


@pytest.mark.parametrize(
    "file", sorted(TRACES.glob("*.json.gz")), ids=lambda path: path.name.split(".")[0]
)
def test_the_functions_read_reports_of_real_traces_as_warpbook_does(
    file: Path, written: ModuleType
) -> None:
    events, run = read_chrome_trace(str(file))
    # the lab reads the recorded times, of which the profiler has its part
    real = report(events, as_bare(run))
    assert isinstance(real, TraceReport)
    given = msgspec.to_builtins(real)
    kind = written.bottleneck({name: given[name] for name in ("metrics", "kernels")})
    assert kind == real.verdict.kind
    mine = [finding for finding in real.findings if finding.kind == kind]
    if mine and mine[0].bound_ns is not None:
        assert written.at_best_ns(given) == pytest.approx(mine[0].bound_ns, rel=0.01)


def test_a_simulated_cell_has_the_times_that_it_was_given() -> None:
    cell = Cell(random.Random(1))
    cell.line(3)
    cell.kernel("nvjet_x", 400_000, "aten::mm")
    cell.copy("HtoD", "Pinned", 1 << 20, 10.0, stream=SIDE)
    cell.line(4)
    cell.python((900, 900))
    cell.copy("DtoH", "Pageable", 4, 1.0, "aten::item")
    profile = cell.profile()
    metrics = profile.metrics
    assert metrics is not None and not profile.completeness.warnings
    assert (metrics.launches, metrics.kernels) == (3, 1)
    copies = {copy.direction: copy for copy in metrics.copies}
    assert copies["HtoD"].host_memory == "pinned"
    assert copies["HtoD"].gb_per_s == pytest.approx(10.0, rel=1e-4)
    # the kernel hides the first copy, and nothing the second
    assert metrics.exposed_copy_ns == 1_300
    assert metrics.copy_ns == 104_858 + 1_300
    assert metrics.compute_ns == 400_000
    waits = {(point.operator, point.line) for point in metrics.sync_points}
    assert waits == {("aten::item", 4)}
    others = [place for place in metrics.idle_places if place.cause == "other"]
    assert others[0].line == 4


def test_the_workload_beside_the_notebook_runs_without_a_gpu(lab: LoadedLab) -> None:
    given = SimpleNamespace()
    exec(compile(lab.given, "given.py", "exec"), given.__dict__)
    # fewer, since a CPU takes seconds for all
    del given.pictures[2:]
    [images] = given.batches(1)
    assert tuple(images.shape) == (2, 3, given.SIDE, given.SIDE)
    assert given.step(images).ndim == 0


def test_every_lab_that_a_finding_names_is_in_the_catalogue() -> None:
    assert set(LABS.values()) <= set(load_all())


def test_the_loop_to_be_fixed_is_right_and_told_what_costs_most() -> None:
    fix = find_lab("fix-the-trace")
    case = public_cases(fix.lab)[0]
    steps = case.sizes["steps"]
    assert fix.lab.speed is not None
    baseline = ((fix.private or fix.folder) / fix.lab.speed.baseline).read_text()
    launches = []
    for source in (fix.starter, baseline, fix.reference):
        [case_result] = check_host(Submission(fix, source), [case]).cases
        # what is wrong with the first two is not their results
        assert case_result.wrong is None and not case_result.findings
        assert case_result.host_counts is not None
        launches.append(case_result.host_counts.launches)
        waits = case_result.host_counts.synchronizations
        assert waits == (1 if source == fix.reference else 2 * steps)
        assert case_result.passed == (source == fix.reference)
    assert launches[0] > 2 * launches[1] > 10 * launches[2]


def test_the_workload_lies_beside_the_notebook_and_is_not_shown_in_it(
    lab: LoadedLab, tmp_path: Path
) -> None:
    opened = open_lab(lab, tmp_path)
    assert (tmp_path / "given.py").read_text() == lab.given
    assert "def turned" not in opened.notebook.read_text()
