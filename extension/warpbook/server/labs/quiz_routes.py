"""`api/v1/quizzes`: the questions of a quiz, an answer marked, and where to begin."""

from __future__ import annotations

import asyncio
from typing import Annotated

from jupyter_server.auth.decorator import authorized
from msgspec import Meta, Struct
from tornado import web

from warpbook.server.labs.labs_routes import done, refusals
from warpbook.server.records.rest import Handler
from warpbook.server.stream.selection import encode

# the engine of labs takes 50 ms to load, which a server's start need not wait for


class QuizHandler(Handler):
    """`GET api/v1/quizzes/NAME`.

    Cost: the descriptions of the labs are read; one request at a time.
    """

    @web.authenticated
    @authorized
    async def get(self, name: str) -> None:
        """List the questions; no Python of a lab runs."""
        from warpbook.server.labs.labs_work import quiz_sheet

        self.finish_json(encode(await done(quiz_sheet, name)))


class _Answer(Struct, frozen=True):
    #: from 1
    question: Annotated[int, Meta(ge=1, le=50)]
    #: of a choice, or "?"
    answer: Annotated[str, Meta(pattern=r"^[a-h?]$")]


class QuizMarkHandler(Handler):
    """`GET api/v1/quizzes/NAME/mark`.

    Cost: one child process at a time, which checks a choice after the other.
    """

    query_type = _Answer

    @web.authenticated
    @authorized
    async def get(self, name: str) -> None:
        """Mark one answer."""
        from warpbook.server.labs.labs_work import quiz_mark

        query = self.query(_Answer)
        async with self.settings.setdefault("warpbook_marking", asyncio.Lock()):
            with refusals():
                mark = await quiz_mark(name, query.question, query.answer)
        self.finish_json(encode(mark))


class _Wrong(Struct, frozen=True):
    #: numbers of questions with commas between them
    wrong: Annotated[str, Meta(pattern=r"^(\d{1,2}(,\d{1,2}){0,49})?$")] = ""


class QuizBeginHandler(Handler):
    """`GET api/v1/quizzes/placement/begin`.

    Cost: the descriptions of the labs are read; one request at a time.
    """

    query_type = _Wrong

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Name the lab to begin with."""
        from warpbook.server.labs.labs_work import quiz_begin

        wrong = {
            int(number) for number in self.query(_Wrong).wrong.split(",") if number
        }
        self.finish_json(encode(await done(quiz_begin, wrong)))
