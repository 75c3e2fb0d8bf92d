"""A request that may be done, with what its path names."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from warpbook_hub.course.courses import Course
from warpbook_hub.course.publications import Publication
from warpbook_hub.rules.visibility import Viewer, may_see_marks
from warpbook_hub.work.results import Standing, standing, without_result
from warpbook_hub.work.submissions import Submission


@dataclass(frozen=True)
class Admitted:
    """What a route's function is given: it need not ask again who may.

    A route that has no course, lab or submission in its path does not ask for it.
    """

    connection: Connection
    now_ms: int
    username: str
    given_course: Course | None = None
    given_viewer: Viewer | None = None
    given_lab: Publication | None = None
    given_submission: Submission | None = None
    person: str = ""
    job: str = ""
    appeal: str = ""
    grader: str = ""
    section: str = ""
    #: the person's id, if they operate the hub
    operator: str = ""

    @property
    def course(self) -> Course:
        assert self.given_course is not None
        return self.given_course

    @property
    def viewer(self) -> Viewer:
        assert self.given_viewer is not None
        return self.given_viewer

    @property
    def actor(self) -> str:
        """Name who asks, for the audit log."""
        return self.operator or self.viewer.person

    @property
    def act(self) -> tuple[Connection, int, str]:
        """What every change begins with: in which transaction, when and by whom."""
        return self.connection, self.now_ms, self.actor

    @property
    def lab(self) -> Publication:
        """Give the lab of the path, or of its submission."""
        assert self.given_lab is not None
        return self.given_lab

    @property
    def sees_marks(self) -> bool:
        """Whether they are shown marks and feedback of the lab."""
        return may_see_marks(self.viewer, self.lab.is_hidden)

    def standing(self, submission: str) -> Standing:
        """Tell how it stands with a submission of the lab, as far as they may know."""
        now = standing(self.connection, submission)
        return now if self.sees_marks else without_result(now)

    @property
    def submission(self) -> Submission:
        """Give the submission of the path, or of its job."""
        assert self.given_submission is not None
        return self.given_submission

    @property
    def is_staff(self) -> bool:
        """Whether they look after others."""
        return self.viewer.role != "learner" and not self.viewer.is_hidden

    @property
    def is_instructor(self) -> bool:
        return self.viewer.role == "instructor" and not self.viewer.is_hidden
