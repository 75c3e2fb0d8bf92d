"""Counts verdicts by language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.corpus.judging import Judged

#: languages as they are told, in this order
LANGUAGES = {
    "cuda": "CUDA C++",
    "triton": "Triton",
    "host": "host code",
    "plan": "plans",
}


@dataclass
class Tally:
    """How the sources of a language, or all, were judged."""

    right_passed: int = 0
    right_rejected: int = 0
    right_unsupported: int = 0
    wrong_caught: int = 0
    wrong_passed: int = 0
    wrong_unsupported: int = 0
    #: not told without a GPU, and no verdict was asked for
    wrong_beyond: int = 0
    #: of those that were caught
    line_named: int = 0
    cause_named: int = 0
    both_named: int = 0
    seconds: float = 0.0

    @property
    def right(self) -> int:
        """Count right sources."""
        return self.right_passed + self.right_rejected + self.right_unsupported

    @property
    def wrong(self) -> int:
        """Count wrong sources."""
        judged_count = self.wrong_caught + self.wrong_passed
        return judged_count + self.wrong_unsupported + self.wrong_beyond

    def add(self, judged: Judged, use_gpu: bool) -> None:
        """Count one more."""
        self.seconds += judged.seconds
        verdict = judged.verdict
        if judged.entry.is_right:
            self.right_passed += verdict == "passed"
            self.right_rejected += verdict == "failed"
            self.right_unsupported += verdict == "not supported"
            return
        is_beyond = verdict == "passed" and judged.entry.needs_gpu and not use_gpu
        self.wrong_beyond += is_beyond
        self.wrong_passed += verdict == "passed" and not is_beyond
        self.wrong_unsupported += verdict == "not supported"
        if verdict == "failed":
            self.wrong_caught += 1
            self.line_named += judged.has_line
            self.cause_named += judged.has_cause
            self.both_named += judged.has_line and judged.has_cause


def tallied(judged: Sequence[Judged], use_gpu: bool) -> dict[str, Tally]:
    """Count by language, those that have any, and all together."""
    tallies = {}
    for language, title in LANGUAGES.items():
        mine = [
            one_source for one_source in judged if one_source.entry.language == language
        ]
        if mine:
            tallies[title] = _counted(mine, use_gpu)
    return {**tallies, "all": _counted(judged, use_gpu)}


def misjudged(judged: Iterable[Judged], use_gpu: bool) -> list[Judged]:
    """Give those that were judged otherwise than is known of them."""
    return [
        one_source
        for one_source in judged
        if not one_source.is_as_known and (use_gpu or not one_source.entry.needs_gpu)
    ]


def _counted(judged: Iterable[Judged], use_gpu: bool) -> Tally:
    tally = Tally()
    for one_source in judged:
        tally.add(one_source, use_gpu)
    return tally
