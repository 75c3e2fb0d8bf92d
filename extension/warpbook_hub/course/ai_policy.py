"""What AI assistants of learners may do with the labs of a course."""

from __future__ import annotations

from sqlalchemy import Connection

from warpbook.hub_protocol import AiPolicy
from warpbook_hub.course.courses import Course
from warpbook_hub.course.publications import Publication, reference_from


def policy_of(course: Course, lab: Publication) -> AiPolicy:
    """Give the lab's policy, else its course's."""
    return lab.ai_policy or course.ai_policy


def policy_now(
    connection: Connection, now_ms: int, course: Course, lab: Publication
) -> AiPolicy:
    """Give what holds now: anything goes once learners see the reference."""
    policy = policy_of(course, lab)
    if policy != "on" and now_ms >= reference_from(connection, lab.id):
        return "on"
    return policy
