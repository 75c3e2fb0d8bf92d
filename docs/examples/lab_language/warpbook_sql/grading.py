"""A query graded: run in the jail on tables that the lab draws, judged by the lab."""

import random
from typing import ClassVar

from warpbook_labs.errors import BadLab, NoTrace
from warpbook_labs.grading.grader import Draws, Grader
from warpbook_labs.results.check import CaseResult, CheckResult, sentence, status_of
from warpbook_labs.results.disclosure import disclosed
from warpbook_labs.sandbox import parent
from warpbook_labs.sandbox.work import Limits, Refused
from warpbook_sql.messages import Query, Tables

SHOWN = 0


class SqlGrader(Grader):
    """Grades alike on every machine."""

    limits: ClassVar = Limits(processor_s=10, memory_bytes=1 << 30)

    def get_ready(self):
        pass

    def grade(self, submission):
        seeds = [] if submission.seed is None else [submission.seed]
        return disclosed(self.check(submission, seeds))

    def check_draws(self, submission, seeds):
        results = {seed: self.check(submission, [seed]) for seed in seeds}
        failed = [one for one in results.values() if one.status != "passed"]
        first = (failed or list(results.values()))[0]
        return Draws(first, {seed: list(one.cases) for seed, one in results.items()})

    def check(self, submission, seeds):
        """Return the result with the tables shown, and those of some seeds."""
        loaded, lab = submission.loaded, submission.loaded.lab.id
        drawn = [
            (question, seed != SHOWN)
            for seed in (SHOWN, *seeds)
            for question in loaded.cases.questions(random.Random(seed))
        ]
        tables = tuple(question.arguments["sales"] for question, _ in drawn)
        limits = submission.limits or self.limits
        outcome = parent.run(Query(submission.source, tables), limits)
        if isinstance(outcome.result, Refused):
            return CheckResult(lab, "compile error", outcome.result.message)
        if not isinstance(outcome.result, Tables):
            return CheckResult(lab, outcome.ended, outcome.message)
        rows = outcome.result.rows
        if len(rows) != len(drawn):
            return CheckResult(lab, "stopped", "Its answer is invalid.")
        cases = []
        for (question, is_hidden), answer in zip(drawn, rows, strict=True):
            is_error = isinstance(answer, str)
            words = answer if is_error else loaded.cases.judge(question, answer)
            # a query can put what it reads of a table into SQLite's words
            if is_hidden and words:
                words = "It fails; details are shown for visible cases only."
            cases.append(CaseResult(question.about, is_hidden, not words, words))
        return CheckResult(
            lab,
            status_of(cases),
            sentence(cases),
            tuple(cases),
            sum(case.passed for case in cases),
            len(cases),
            isolation=outcome.isolation,
        )

    def refuse_other_draws(self, loaded, seeds):
        for seed in (SHOWN, *seeds):
            first, again = (
                loaded.cases.questions(random.Random(seed)) for _ in range(2)
            )
            if first != again:
                raise BadLab(f"{loaded.folder / 'cases.py'}: draw from `rng` alone.")

    def record_trace(self, gpu, submission, trace, telemetry):
        raise NoTrace("A query runs nothing on a GPU.")
