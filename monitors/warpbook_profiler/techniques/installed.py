"""Techniques that other installed packages bring under the entry point of `GROUP`.

What they say is bounded and made plain as it comes in. A defect of theirs is a problem
in words beside the report, and never ends it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import NamedTuple

import msgspec

from warpbook_monitors.plain_text import bounded
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts
from warpbook_profiler.model.change import Change
from warpbook_profiler.techniques.technique import ChangeKind, Technique

_log = logging.getLogger(__name__)

GROUP = "warpbook.techniques"
#: changes, questions or experiments of one technique, and proposals of one window
MOST = 10
#: packages
_MOST_INSTALLED = 50
_MOST_TEXT, _MOST_CODE = 500, 20_000


class Installed(NamedTuple):
    """What other packages bring, and what is wrong with the rest, in words."""

    techniques: tuple[Technique, ...] = ()
    problems: tuple[str, ...] = ()


def installed(own: Iterable[Technique]) -> Installed:
    """Load the techniques of other packages.

    Args:
        own: those of this package, whose names are taken.
    """
    names, questions = set[str](), set[str]()
    for technique in own:
        names |= _all_names(technique)
        questions |= {question.name for question in technique.questions}
    techniques, problems = [], []
    for entry in list(entry_points(group=GROUP))[:_MOST_INSTALLED]:
        try:
            technique = _loaded(entry)
            _refuse_taken(_all_names(technique), names)
            asked_names = {question.name for question in technique.questions}
            _refuse_taken(asked_names, questions)
            for kind in technique.changes:
                if kind.answers and kind.answers.name not in asked_names | questions:
                    raise ValueError(f"no question is named {kind.answers.name[:60]!r}")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises
            problems.append(problem(entry.name, error))
            continue
        names |= _all_names(technique)
        questions |= asked_names
        techniques.append(technique)
    return Installed(tuple(techniques), tuple(problems))


def problem(package: str, error: BaseException) -> str:
    """Return in words what a technique of another package did; it is logged, too."""
    _log.warning("The technique %s failed.", bounded(package), exc_info=error)
    return bounded(f"The technique {package} failed: {error!r}", _MOST_TEXT)


def plain_proposal(proposal: Proposal) -> Proposal:
    """Return a proposal whose texts are bounded."""
    return replace(
        proposal,
        title=bounded(proposal.title, _MOST_TEXT),
        evidence=bounded(proposal.evidence, _MOST_TEXT),
        reason=bounded(proposal.reason, _MOST_TEXT),
        no_gain=bounded(proposal.no_gain, _MOST_TEXT),
        operator=None if proposal.operator is None else bounded(proposal.operator),
        code=proposal.code if _is_plain(proposal.code) else "",
    )


def _is_plain(code: str) -> bool:
    lines = code.replace("\t", "    ").splitlines()
    return len(code) <= _MOST_CODE and all(map(str.isprintable, lines))


def checked_change(change: Change) -> Change:
    """Return a change whose fields have the types that they should.

    Raises:
        ValidationError: one has another.
    """
    return msgspec.convert(msgspec.to_builtins(change), Change)


def _loaded(entry: EntryPoint) -> Technique:
    """Load one technique.

    Raises:
        ValueError: it is none, has too many parts, or texts that are not plain.
    """
    technique = entry.load()
    if not isinstance(technique, Technique):
        raise TypeError(f"{entry.value} is not a Technique")
    parts = (technique.changes, technique.questions, technique.experiments)
    if any(len(part) > MOST for part in parts) or len(technique.names) > MOST:
        raise ValueError(f"it has more than {MOST} changes, questions or experiments")
    texts = [technique.untried]
    for kind in technique.changes:
        texts += [kind.what, kind.time, kind.lab or ""]
    for question in technique.questions:
        texts += [question.name, question.text, question.no_where, question.lab or ""]
    for experiment in technique.experiments:
        ChangeKind((experiment.name,), "", "", None, None)
        texts += [experiment.advice, experiment.what, experiment.not_where]
        if not 1 <= experiment.warm_ups <= MOST or not 0 <= experiment.cost <= MOST:
            raise ValueError(f"warm_ups and cost are at most {MOST}")
    for text in texts:
        if bounded(text, _MOST_TEXT) != text:
            raise ValueError(
                f"{text[:60]!r} is not one line of at most {_MOST_TEXT} characters"
            )
    return replace(
        technique,
        package=bounded(entry.name),
        questions=tuple(
            replace(question, judge=partial(_judged, entry.name, question.judge))
            for question in technique.questions
        ),
    )


def _judged(
    package: str, judge: Callable[[Facts], Judgement], facts: Facts
) -> Judgement:
    try:
        answer, evidence, advice = judge(facts)
        said = [answer, bounded(evidence, _MOST_TEXT), bounded(advice, _MOST_TEXT)]
        return msgspec.convert(said, Judgement)
    except Exception as error:  # noqa: BLE001 - its defect must not end the checklist
        return Judgement(
            "unknown", problem(package, error), "Ask whoever made that package."
        )


def _all_names(technique: Technique) -> set[str]:
    tried = (experiment.name for experiment in technique.experiments)
    return {*technique.names, *tried}


def _refuse_taken(names: set[str], taken: set[str]) -> None:
    """Look that no name stands for two things.

    Raises:
        ValueError: one does.
    """
    if names & taken:
        raise ValueError(f"another technique has {', '.join(sorted(names & taken))}")
