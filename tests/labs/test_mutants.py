"""Mutants of right solutions: which are made, and what is said of those that pass."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.corpus import mutants as page
from tests.corpus import report
from warpbook_labs.lab.loader import load_all
from warpbook_labs.mutation import score
from warpbook_labs.mutation.changes import mutants, python_changes
from warpbook_labs.mutation.score import Score, cuda_changes, measure, regraded
from warpbook_labs.mutation.score import made as wrong_and_right
from warpbook_labs.results.check import CheckResult

KERNEL = """\
// launch: sum<<<ceil_div(n, 256), 256>>>(x, out, n)
// i < n, and "0 < 1" in words
#define LESS(a) ((a) < 1)
__global__ void sum(const float* x, float* out, int n) {
    const char* words = "i < n";
    float part = 0;
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n && x[i] > 1.5f) part = x[i] - part;
    __syncthreads();
    atomicAdd(out, part);
}
"""
PYTHON = '''\
def run(state, x, out):
    """Take x[0] < 1 as it is."""
    état, count = "mean <", -(-len(x) // 4)
    if "mean" in état and count < 3:
        state.last = x.sum(dim=0, dtype=torch.float32)
    for i in range(count):
        tl.store(out + i, min(x, i), mask=i < 3)
    torch.cuda.synchronize()
'''


def made(file: str, source: str) -> set[tuple[int, str]]:
    """Return the line and the changed text of each mutant."""
    changes = cuda_changes if file.endswith(".cu") else python_changes
    return {(one.line, one.after) for one in mutants(file, source, changes(source))}


def test_a_kernel_has_mutants_of_its_code_and_rule_and_none_of_its_words() -> None:
    lines = made("a.cu", KERNEL)
    assert {
        (1, "// launch: sum<<<((n) / (256)), 256>>>(x, out, n)"),
        (1, "// launch: sum<<<ceil_div(n, 257), 256>>>(x, out, n)"),
        (1, "// launch: sum<<<ceil_div(n, 256), 255>>>(x, out, n)"),
        (1, "// launch: sum<<<ceil_div(n, 256), 256>>>(out, x, n)"),
        (6, "__half part = 0;"),
        (6, "float part = 1;"),
        (7, "short i = blockIdx.x * 256 + threadIdx.x;"),
        (7, "int i = blockIdx.y * 256 + threadIdx.x;"),
        (8, "if (i <= n && x[i] > 1.5f) part = x[i] - part;"),
        (8, "if (i < n && true) part = x[i] - part;"),
        (8, "if (i < n && x[i] > 3.0f) part = x[i] - part;"),
        (8, "if (true) part = x[i] - part;"),
        (9, ";"),
        (10, "((*(out) += part) - part);"),
        (10, "atomicAdd(part, out);"),
    } <= lines
    assert not {line for line, _ in lines} & {2, 3, 5}
    # more threads than elements are no mistake
    assert (1, "// launch: sum<<<ceil_div(n, 255), 256>>>(x, out, n)") not in lines


def test_a_rule_may_have_any_numbers() -> None:
    lines = made("a.cu", "// launch: sum<<<n, 0x20>>>(x, 1.5f, 0)\n")
    assert {
        (1, "// launch: sum<<<n, 31>>>(x, 1.5f, 0)"),
        (1, "// launch: sum<<<n, 0x20>>>(x, 1.5f, (-1))"),
    } <= lines


def test_python_has_mutants_of_its_statements_and_none_of_its_words() -> None:
    lines = made("a.py", PYTHON)
    assert {
        (3, 'état, count = "mean <", (len(x) // 4)'),
        (4, 'if "mean" not in état and count < 3:'),
        (4, 'if "mean" in état and count <= 3:'),
        (4, 'if "mean" in état and True:'),
        (5, "pass"),
        (5, "state.last = x.sum(dim=1, dtype=torch.float32)"),
        (5, "state.last = x.sum(dim=0, dtype=torch.float16)"),
        (6, "for i in range(count - 1):"),
        (7, "tl.store(out + i, max(x, i), mask=i < 3)"),
        (7, "tl.store(out + i, min(x, i), mask=None)"),
        (8, "pass"),
    } <= lines
    assert not {line for line, _ in lines} & {1, 2}


def test_what_each_lab_explains_as_right_is_a_mutant_of_it() -> None:
    equivalent = [wrong_and_right(lab)[1] for lab in load_all().values()]
    assert any(equivalent)


def test_what_can_not_be_graded_here_is_neither_right_nor_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = CheckResult("occupancy", "unsupported", "There is no such header.")
    grader = SimpleNamespace(grade=lambda submission: result)
    monkeypatch.setattr(score, "grader_of", lambda lab: grader)
    outcomes = {outcome for _, outcome, _ in regraded(load_all()["occupancy"], 2)}
    assert outcomes == {"not supported"}


@pytest.mark.parametrize("lab", ["occupancy", "vector-add", "thread-and-block"])
def test_mutants_of_a_lab_fail(lab: str) -> None:
    outcomes = [outcome for _, outcome, _ in measure(load_all()[lab], 6)]
    assert "killed" in outcomes and "survived" not in outcomes


def test_the_page_keeps_the_scores_of_labs_that_are_not_measured_again(
    tmp_path: Path,
) -> None:
    file = tmp_path / "page.md"
    file.write_text("# A page\n")
    for lab in ("occupancy", "roofline"):
        page.main(["--lab", lab, "--sample", "1", "--write", str(file)])
    scores = page.rows(file)
    assert list(scores) == ["occupancy", "roofline"]
    assert all(score.killed + score.survived == 1 for score in scores.values())
    assert scores["occupancy"].made > 100 and isinstance(scores["roofline"], Score)
    # and who judges the corpus again leaves them where they are
    file.write_text(report.page([], False, page.part(file.read_text())))
    assert page.rows(file) == scores


def test_each_lab_has_a_score_of_the_mutants_that_it_has_today() -> None:
    known = page.rows(Path(__file__).parents[2] / "docs" / "corpus.md")
    counted = {}
    for name, loaded in load_all().items():
        wrong, right = wrong_and_right(loaded)
        counted[name] = (len(wrong) + len(right), len(right))
    assert {name: (one.made, one.equivalent) for name, one in known.items()} == counted
    assert all(one.share is not None and one.share >= 0.98 for one in known.values())
