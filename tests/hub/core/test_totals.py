"""One total: what page, files, API and a learning platform say of random histories."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as some
from msgspec.structs import replace
from pytest import approx
from sqlalchemy import Connection, update

from tests.hub.core.course import (
    CLOSES_MS,
    DUE_MS,
    ROSTER,
    START_MS,
    classroom,
    facts,
    publish_lab,
)
from warpbook.hub_protocol import Nothing
from warpbook_hub.course.courses import Course, change_course, course
from warpbook_hub.course.extensions import extend
from warpbook_hub.course.mark_settings import hide_marks, set_weights
from warpbook_hub.course.publications import publication, set_rubric, withdraw
from warpbook_hub.course.roster import import_roster
from warpbook_hub.course.roster_csv import read_roster
from warpbook_hub.database.tables import JOBS, LTI_PEOPLE
from warpbook_hub.errors import HubError
from warpbook_hub.exports.grades import grades, nbgrader_csv, totals_csv
from warpbook_hub.lti import ledger
from warpbook_hub.rules.lateness import HOUR_MS
from warpbook_hub.rules.rubric import Rubric, RubricRow
from warpbook_hub.rules.totals import LabWeight
from warpbook_hub.rules.visibility import Role, Viewer
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.api.gradebook import learners
from warpbook_hub.service.api.learner import own_labs, own_total
from warpbook_hub.service.page_handler import drawn
from warpbook_hub.service.pages.gradebook_page import rows_of
from warpbook_hub.service.pages.learner_pages import labs_page
from warpbook_hub.service.pages.staff_pages import log_page, person_page
from warpbook_hub.service.parameters import LogQuery
from warpbook_hub.work.decisions import excuse, override, regrade
from warpbook_hub.work.feedback import give_points
from warpbook_hub.work.marks import all_work
from warpbook_hub.work.submissions import submission

COURSE = "gpu101"
#: how many labs are dropped, and how each counts
Rule = tuple[int, tuple[LabWeight, ...]]
#: what is done to which lab by or for whom, and a number
Step = tuple[str, int, int, int]
NAMES = ("ada", "bob", "cyd")
LABS = ("vector-add", "transpose", "histogram", "reduction")
#: a release tries 1,000 on both databases: `WARPBOOK_HISTORIES=1000`, `--timeout=0`
HISTORIES = int(os.environ.get("WARPBOOK_HISTORIES", "6"))

weights = some.none() | some.sampled_from([0.0, 0.5, 2.0, 30.0])
rules = some.tuples(
    some.integers(0, 3),
    some.tuples(*[some.builds(LabWeight, weights, some.booleans())] * len(LABS)),
)
steps = some.tuples(
    some.sampled_from(
        [
            *("submit",) * 4,
            *("grade",) * 5,
            *("later", "set", "excuse", "hide", "park", "cancel", "withdraw"),
            *("regrade", "send", "bonus", "take back", "extend", "grace"),
            *("rubric", "points", "points", "roster"),
        ]
    ),
    some.integers(0, 3),
    some.integers(0, 2),
    some.integers(0, 4),
)


class History:
    """A course of four labs, and a platform that keeps the scores it was sent."""

    def __init__(self, path: Path, budget_h: int) -> None:
        course = Course(COURSE, "GPUs", late_budget_h=budget_h)
        self.room = classroom(path, course, is_timed=False, late_percent_per_day=10)
        with self.room.database.write() as connection:
            others = [
                publish_lab(
                    connection,
                    COURSE,
                    lab=lab,
                    title=lab,
                    is_timed=False,
                    late_percent_per_day=25,
                )
                for lab in LABS[1:]
            ]
            connection.execute(
                LTI_PEOPLE.insert(),
                [
                    {"issuer": "i", "subject": name, "person": self.room.people[name]}
                    for name in NAMES
                ],
            )
        self.labs = [self.room.lab, *others]
        self.grader = self.room.grader()
        self.work: list[str] = []
        self.platform: dict[tuple[str, str], float] = {}

    def do(self, step: Step) -> None:
        """Do a step; one that the hub refuses changes nothing."""
        kind, lab, person, number = step
        self.room.now_ms += HOUR_MS // 2
        self.room.lab = self.labs[lab]
        with contextlib.suppress(HubError):
            self._do(kind, NAMES[person], number)

    def _do(self, kind: str, name: str, number: int) -> None:
        room, now_ms = self.room, self.room.now_ms
        if kind == "submit":
            self.work.append(room.submit(name, f"// {len(self.work)}").submission)
        elif kind == "grade":
            if orders := room.lease(self.grader):
                right = facts("right" if number == 4 else "wrong", number)
                room.finish(self.grader, orders[0], right)
        elif kind == "later":
            room.now_ms += number * 30 * HOUR_MS
        elif kind == "send":
            self.send()
        else:
            with room.database.write() as connection:
                self._decide(connection, now_ms, kind, name, number)

    def _decide(
        self, connection: Connection, now_ms: int, kind: str, name: str, number: int
    ) -> None:
        who, lab, person = self.room.instructor, self.room.lab, self.room.people[name]
        at = (connection, now_ms, who)
        if kind in ("park", "cancel"):
            state = "parked" if kind == "park" else "cancelled"
            which = (JOBS.c.state == "queued") & (JOBS.c.publication == lab)
            connection.execute(update(JOBS).where(which).values(state=state))
        elif kind == "regrade" and self.work:
            regrade(*at, [self.work[number % len(self.work)]], "once more")
        elif kind == "withdraw" and number == 0:
            withdraw(*at, lab, "a mistake")
        elif kind == "hide":
            hide_marks(*at, [lab], number % 2 == 0)
        elif kind == "excuse":
            excuse(*at, lab, person, "ill", number > 0)
        elif kind == "set":
            override(*at, lab, person, number * 2.5, "looked at")
        elif kind == "bonus":
            override(*at, lab, person, 10 + number, "more than asked", True)
        elif kind == "take back":
            override(*at, lab, person, None, "after all")
        elif kind == "extend":
            later_ms = number * 24 * HOUR_MS
            dates = DUE_MS + later_ms, CLOSES_MS + later_ms
            extend(*at, lab, person, *dates, "was ill")
        elif kind == "grace":
            changed = replace(course(connection, COURSE), grace_min=number * 30)
            change_course(*at, changed)
        elif kind == "rubric":
            rows = RubricRow("Style", 4.0), RubricRow("Reasons", 2.0)
            set_rubric(*at, lab, Rubric(rows[: (number + 1) // 2], number % 2 == 0))
        elif kind == "points" and self.work:
            given_points = {"Style": float(number), "Reasons": number / 2}
            graded = self.work[-1 - number % len(self.work)]
            titles = [row.title for row in rubric_of(connection, graded).rows]
            give_points(*at, graded, {title: given_points[title] for title in titles})
        elif kind == "roster":
            # number 0 takes one of them off it
            rest = [r for r in read_roster(ROSTER) if number or r.username != name]
            import_roster(*at, COURSE, rest)

    def asked(self, viewer: str, connection: Connection, person: str = "") -> Admitted:
        """Give what a page or route is given when somebody asks for it."""
        role: Role = "instructor" if viewer == "grace" else "learner"
        return Admitted(
            connection,
            self.room.now_ms,
            viewer,
            course(connection, COURSE),
            Viewer(self.room.people[viewer], role, "main"),
            person=self.room.people.get(person, ""),
        )

    def send(self) -> None:
        """Have the platform told of what changed, as the sender does."""
        room = self.room
        with room.database.write() as connection:
            at = (connection, room.now_ms)
            ledger.add(*at, ledger.changes(*at, COURSE, "i"))
            for score in ledger.due(*at, COURSE, "i", 1000):
                assert ledger.begin(connection, score.id)
                ledger.note_taken(*at, score.id, "taken")
                key = score.publication, score.subject
                self.platform.pop(key, None)
                if score.points is not None:
                    self.platform[key] = score.points / score.most_points


def rubric_of(connection: Connection, submission_id: str) -> Rubric:
    lab = submission(connection, submission_id).publication
    return publication(connection, lab).rubric


def expected(marks: dict[str, tuple[float, float]], rule: Rule) -> tuple[float, float]:
    """Add up points and maxima, by lab, in the plainest way."""
    drop, counting = rule
    of = dict(zip(LABS, counting, strict=True))
    counted = {lab: mark for lab, mark in marks.items() if of[lab].weight != 0}
    shares = {lab: points / most for lab, (points, most) in counted.items()}
    regular = [lab for lab in counted if not of[lab].is_bonus]
    for _ in range(min(drop, max(0, len(regular) - 1))):
        least = min(shares[lab] for lab in regular)
        worst = [lab for lab in regular if shares[lab] - least < 1e-9]
        heaviest = max(worst, key=lambda lab: of[lab].weight or counted[lab][1])
        regular.remove(heaviest)
        del counted[heaviest]
    points = most = 0.0
    for lab, (given_points, most_points) in counted.items():
        weight = of[lab].weight
        worth = 1.0 if weight is None else weight / most_points
        points += given_points * worth
        most += 0.0 if of[lab].is_bonus else most_points * worth
    return points, most


def csv_rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def page_of(template: str, admitted: Admitted, values: dict[str, Any]) -> str:
    """Draw a page as its handler does."""
    about = {
        "course": admitted.course,
        "is_staff": admitted.is_staff,
        "is_instructor": admitted.is_instructor,
        "now_ms": admitted.now_ms,
    }
    return drawn(template, {**about, **values}).decode()


def said(page: str) -> tuple[float, float]:
    """Read the total on a page."""
    found = re.search(r'id="total">([\d.]+) of ([\d.]+)<', page)
    assert found is not None
    return float(found[1]), float(found[2])


def check(history: History, rule: Rule) -> None:
    """Hold all that is said of each learner against the same rules."""
    room = history.room
    # nothing more is taken: what was not handed in counts 0
    room.now_ms = max(room.now_ms, CLOSES_MS) + 1000 * HOUR_MS
    with room.database.read() as connection:
        admitted = history.asked("grace", connection)
        log = page_of("log.html", admitted, log_page(admitted, LogQuery()))
        # the text of the table: names and times, no ids and no milliseconds
        text = re.sub(r"<[^>]*>", " ", log[log.index("<tbody>") :])
        assert re.findall(r"[0-9a-f]{12,}|[0-9]{10,}", text) == []
        whole = grades(connection, room.now_ms, COURSE)
        drop_lowest = admitted.course.drop_lowest
        work = all_work(connection, room.now_ms, COURSE)
        in_gradebook = {
            row.member.username: (row.total.points, row.total.most_points)
            for row in rows_of(learners(admitted), work, drop_lowest)
        }
        assert in_gradebook.keys() == {one.student_id for one in whole}
        lines = csv_rows(nbgrader_csv(whole))
        by_line = {row["student_id"]: row for row in csv_rows(totals_csv(whole))}
        for learner in msgspec.json.decode(msgspec.json.encode(whole)):
            name, total = learner["student_id"], learner["total"]
            of_lines = {
                line["assignment"]: (
                    float(line["score"] or 0),
                    float(line["max_score"]),
                )
                for line in lines
                if line["student_id"] == name
                and line["status"] in ("graded", "not handed in")
            }
            json_total = total["points"], total["most_points"]
            assert in_gradebook[name] == json_total
            assert json_total == approx(expected(of_lines, rule))
            row = by_line[name]
            csv_total = float(row["total"]), float(row["max_total"])
            assert csv_total == approx(json_total, abs=1e-6)
            for line in lines:
                assert (line["score"] != "") == (line["status"] == "graded")
            page = person_page(history.asked("grace", connection, name), Nothing())
            shown = page_of("person.html", history.asked("grace", connection), page)
            assert said(shown) == approx(json_total, abs=0.006)
            check_own(history, rule, connection, name)


def check_own(history: History, rule: Rule, connection: Connection, name: str) -> None:
    """Hold what a learner is shown, and what the platform has, against the rules."""
    admitted = history.asked(name, connection)
    api = own_total(admitted, Nothing())
    total = api.points, api.most_points
    page = page_of("labs.html", admitted, labs_page(admitted, Nothing()))
    assert said(page) == approx(total, abs=0.006)
    [file] = grades(connection, admitted.now_ms, COURSE, admitted.viewer)
    assert file.total == api
    listed = {lab.lab: lab for lab in own_labs(admitted, Nothing())}
    sent = {
        lab: history.platform[one.id, name] * one.most_points
        for lab, one in listed.items()
        if (one.id, name) in history.platform
    }
    graded = {lab: one.points for lab, one in listed.items() if one.mark == "graded"}
    assert sent == approx(graded)
    missed = {lab: 0.0 for lab, one in listed.items() if one.mark == "not handed in"}
    of_platform = {
        lab: (points, listed[lab].most_points)
        for lab, points in (sent | missed).items()
    }
    assert total == approx(expected(of_platform, rule))


def run(path: Path, rule: Rule, budget_h: int, made: list[Step]) -> None:
    history = History(path, budget_h)
    try:
        with history.room.database.write() as connection:
            counting = dict(zip(history.labs, rule[1], strict=True))
            at = (connection, START_MS, history.room.instructor, COURSE)
            set_weights(*at, rule[0], counting)
        for step in made:
            history.do(step)
        history.send()
        check(history, rule)
    finally:
        history.room.database.close()


@settings(max_examples=HISTORIES)
@given(rules, some.sampled_from([0, 30]), some.lists(steps, max_size=40))
def test_all_say_the_same_total_of_any_history(
    rule: Rule, budget_h: int, made: list[Step]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder, "hub.db"), rule, budget_h, made)
