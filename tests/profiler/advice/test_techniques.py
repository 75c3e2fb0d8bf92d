"""Each technique has all of its parts, or says why not; documents say the same."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from warpbook_profiler.checklist.facts import Question
from warpbook_profiler.techniques import registry
from warpbook_profiler.techniques.registry import OWN, experiments, questions
from warpbook_profiler.techniques.technique import ChangeKind, Technique


def kinds() -> list[ChangeKind]:
    return [kind for technique in OWN for kind in technique.changes]


def test_no_file_is_forgotten_and_no_name_is_taken_twice() -> None:
    folder = Path(registry.__file__).parent
    files = [path for path in folder.glob("*/*.py") if path.stem != "__init__"]
    assert len(files) == len(OWN)
    for names in (
        [name for kind in kinds() for name in kind.names],
        [question.name for question in questions()],
        [experiment.name for experiment in experiments()],
    ):
        assert Counter(names).most_common(1)[0][1] == 1


@pytest.mark.parametrize("technique", OWN, ids=lambda one: one.names or one.questions)
def test_what_a_technique_lacks_it_explains(technique: Technique) -> None:
    assert bool(technique.rule) == bool(technique.changes)
    assert technique.changes or technique.questions
    if technique.changes:
        assert bool(technique.experiments) != bool(technique.untried)
    for experiment in technique.experiments:
        assert experiment.what and experiment.not_where and experiment.advice


def test_changes_answer_questions_that_are_asked() -> None:
    answered = [kind.answers for kind in kinds() if isinstance(kind.answers, Question)]
    assert {question.name for question in answered} <= {
        question.name for question in questions()
    }
    assert len(answered) > 10


def test_what_is_tried_is_advised_but_for_one_way_to_fuse() -> None:
    advised = {name for kind in kinds() for name in kind.names}
    tried = {experiment.name for experiment in experiments()}
    assert tried - advised == {"compile"}
    assert registry.technique_of("compile") is registry.technique_of("fuse")


def test_techniques_are_known_without_torch() -> None:
    code = (
        "import sys, warpbook_profiler.techniques.registry as registry\n"
        "registry.experiments(), registry.questions()\n"
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["", "Tf32", "a--b", "a" * 41, "a\n", "<b>"])
def test_a_change_has_a_plain_name(name: str) -> None:
    with pytest.raises(ValueError, match="not a name of a change"):
        ChangeKind((name,), "", "", None, None)
