"""Questions on a learner's own source: the right answer is shown after theirs."""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection, select, update

from warpbook.hub_protocol import CodeQuestion, CodeQuestionView
from warpbook_hub.database.tables import CODE_QUESTIONS
from warpbook_hub.errors import BadRequest, Conflict


def code_questions(
    connection: Connection, submission_id: str, is_staff: bool
) -> list[CodeQuestionView]:
    """Give the questions on a submission; staff see what is right at once."""
    query = select(CODE_QUESTIONS).where(CODE_QUESTIONS.c.submission == submission_id)
    views = []
    for row in connection.execute(query.order_by(CODE_QUESTIONS.c.number)):
        question = msgspec.json.decode(row.question, type=CodeQuestion)
        tells = is_staff or row.choice is not None
        views.append(
            CodeQuestionView(
                row.number,
                question.ask,
                question.choices,
                row.choice,
                row.answered_ms,
                question.right if tells else None,
                question.because if tells else "",
            )
        )
    return views


def answer_question(
    connection: Connection, now_ms: int, submission_id: str, number: int, choice: int
) -> None:
    """Keep a learner's choice, which stays; the same one again changes nothing.

    Raises:
        BadRequest: there is no such question or choice.
        Conflict: another one was chosen before.
    """
    asked = {
        one.number: one for one in code_questions(connection, submission_id, False)
    }
    question = asked.get(number)
    if question is None or choice >= len(question.choices):
        raise BadRequest("There is no such question or choice.")
    if question.choice not in (None, choice):
        raise Conflict("This question was answered before, and an answer stays.")
    if question.choice is None:
        connection.execute(
            update(CODE_QUESTIONS)
            .where(
                CODE_QUESTIONS.c.submission == submission_id,
                CODE_QUESTIONS.c.number == number,
            )
            .values(choice=choice, answered_ms=now_ms)
        )
