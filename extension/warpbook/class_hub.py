"""Hands labs in to a course's hub: from a notebook, or from a terminal anywhere."""

from __future__ import annotations

import http.client
import os
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct
from msgspec.json import Decoder

from warpbook_monitors.budget import NotJson, decode_json

#: set by the hub for the servers that it starts
URL = "WARPBOOK_HUB_URL"
#: of the course's pages, where they are on a host of their own
PAGES = "WARPBOOK_HUB_PAGES"
SERVER_TOKEN = "JUPYTERHUB_API_TOKEN"
#: of a person on their own machine
OWN_TOKEN = "WARPBOOK_HUB_TOKEN"
_SERVICE = "services/warpbook/"
_WAIT_S = 30.0
_MOST_BYTES = 8 << 20
#: between two tries of a request that did not reach the service
_AGAIN_S, _MOST_AGAIN_S = 1.0, 8.0
#: longest time of all tries, where the person sees progress and where not
_PATIENCE_S, _SILENT_S = 90.0, 7.0
#: with this the course service marks its answers; a gateway before it does not
ANSWER_MARK = "Warpbook-Service"


class HubProblem(Exception):
    """The hub does not do it; the message says why and what to do."""


class PublishedLab(Struct, frozen=True):
    """A lab of a course."""

    course: str
    id: str
    lab: str
    title: str
    is_open: bool


class HubReceipt(Struct, frozen=True, omit_defaults=True):
    """What the hub says of a submission that it has kept."""

    submission: str
    publication: str
    number: int
    received_ms: int
    source_digest: str
    late_hours: int
    signature: str
    #: by how much outages of the hub have moved the due date
    extended_ms: int = 0


class HubPlace(Struct, frozen=True):
    """Where a submission is in the queue."""

    before: int
    eta_s: float | None


class HubFacts(Struct, frozen=True):
    """What a grader has found."""

    verdict: str
    message: str
    right: int
    of: int


class HubPoints(Struct, frozen=True):
    """What that is worth."""

    points: float
    of: float


class HubResult(Struct, frozen=True):
    """A result."""

    facts: HubFacts
    points: HubPoints


class HubState(Struct, frozen=True):
    """How it stands with a submission."""

    receipt: HubReceipt
    #: "waits", "runs", "graded", "parked", "replaced" or "cancelled"
    state: str
    is_provisional: bool
    place: HubPlace | None
    result: HubResult | None


class HubCourse(Struct, frozen=True):
    """A course, and what somebody is in it."""

    id: str
    title: str
    role: str


class HubWindow(Struct, frozen=True):
    """When a lab is due."""

    due_ms: int


class HubLab(Struct, frozen=True):
    """A published lab, and how far somebody is."""

    id: str
    lab: str
    title: str
    is_open: bool
    window: HubWindow | None
    points: float
    most_points: float
    attempts: int
    attempts_left: int | None


class HubLease(Struct, frozen=True):
    """How it stands with one's lease of a GPU."""

    #: "none", "waiting", "held" or "ending"
    state: str
    gpu: str
    name: str
    left_s: int
    #: in the line, from 1
    place: int
    eta_s: int | None
    note: str


class _Problem(Struct, frozen=True):
    error: str = ""


class _Reference(Struct, frozen=True):
    reference: str


Answered = TypeVar("Answered")


def hub_here(say: Callable[[str], None] | None = None) -> ClassHub | None:
    """Give the hub that started this server; None where no course service is.

    Args:
        say: see `ClassHub`.
    """
    url, token = os.environ.get(URL), os.environ.get(SERVER_TOKEN)
    if not (url and token):
        return None
    return ClassHub(url, token, os.environ.get(PAGES, ""), say)


class ClassHub:
    """A course's hub, asked with somebody's token."""

    def __init__(
        self,
        url: str,
        token: str,
        pages_url: str = "",
        say: Callable[[str], None] | None = None,
    ) -> None:
        """Take where it is.

        Args:
            url: of the hub, or of its course service.
            token: with the scope `custom:warpbook:submit`.
            pages_url: of the course's pages, if they are on another host.
            say: is given words while the hub is away, and it is waited for longer.

        Raises:
            HubProblem: it is no address.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise HubProblem(f"{url}: no address of a hub, such as https://host:8000/.")
        path = parts.path.removesuffix("/") + "/"
        if "/services/" not in path:
            path = path.removesuffix("hub/") + _SERVICE
        #: of the course service, with a slash at its end
        self.url = f"{parts.scheme}://{parts.netloc}{path}"
        self._pages = pages_url or path
        self._token, self._say = token, say
        self._opener = urllib.request.build_opener(_NoRedirects)

    def find(self, lab: str, course: str = "") -> PublishedLab:
        """Find a published lab.

        Args:
            lab: its name in the catalogue.
            course: where it is looked for; in all of one's own if empty.

        Raises:
            HubProblem: it is published in no course, or in several.
        """
        courses = [course] if course else [one.id for one in self.courses()]
        labs = [
            PublishedLab(of, one.id, one.lab, one.title, one.is_open)
            for of in courses
            for one in self.labs(of)
            if one.lab == lab
        ]
        if len(labs) == 1:
            return labs[0]
        if labs:
            names = ", ".join(one.course for one in labs)
            raise HubProblem(f"`{lab}` is published in several courses: {names}.")
        raise NotPublished(f"`{lab}` is published in no course of yours.")

    def hand_in(
        self, lab: PublishedLab, source: str, replace: bool = False
    ) -> HubReceipt:
        """Hand in a source; the receipt is given once it is on the hub's disk.

        Raises:
            HubProblem: the hub does not take it.
        """
        # the same number again: asked twice it is kept once
        body = {
            "source": source,
            "request": secrets.token_hex(16),
            "replace": replace,
        }
        path = f"courses/{quote(lab.course)}/labs/{quote(lab.id)}/submissions"
        return self._ask(path, HubReceipt, msgspec.json.encode(body))

    def state(self, lab: PublishedLab, submission: str) -> HubState:
        """Tell how it stands with a submission.

        Raises:
            HubProblem: the hub does not say.
        """
        path = f"courses/{quote(lab.course)}/submissions/{quote(submission)}"
        return self._get(path, HubState)

    def reference(self, lab: PublishedLab) -> str:
        """Give the reference; empty where the hub has none yet.

        Raises:
            HubProblem: it is not shown yet, or the hub does not answer.
        """
        path = f"courses/{quote(lab.course)}/labs/{quote(lab.id)}/reference"
        return self._get(path, _Reference).reference

    def page(self, lab: PublishedLab, submission: str) -> str:
        """Give the address of a submission's page, or its path on this host."""
        return f"{self.course_page(lab.course)}/submissions/{quote(submission)}"

    def course_page(self, course: str) -> str:
        """Give the address of a course's page, or its path on this host."""
        return f"{self._pages}courses/{quote(course)}"

    def courses(self) -> list[HubCourse]:
        """Give one's own courses.

        Raises:
            HubProblem: the hub does not tell.
        """
        return self._get("courses", list[HubCourse])

    def labs(self, course: str) -> list[HubLab]:
        """Give the labs of a course that one may see.

        Raises:
            HubProblem: the hub does not tell.
        """
        return self._get(f"courses/{quote(course)}/labs", list[HubLab])

    def lease(self, course: str, what: str = "", **values: Any) -> HubLease:
        """Take, extend or give back a GPU, or look.

        Args:
            course: for which it is used.
            what: "take", "extend" or "return"; empty to look.
            values: `minutes` (10 to 30), and of "take" `model`, a GPU's name.

        Raises:
            HubProblem: the hub does not do it.
        """
        path = f"courses/{quote(course)}/gpus"
        if not what:
            return self._get(path, HubLease)
        body = msgspec.json.encode(values)
        return self._ask(f"{path}/{what}", HubLease, body)

    def _get(self, path: str, kind: type[Answered]) -> Answered:
        return self._ask(path, kind, None)

    def _ask(self, path: str, kind: type[Answered], body: bytes | None) -> Answered:
        patience_s = _PATIENCE_S if self._say else _SILENT_S
        end_s, wait_s = time.monotonic() + patience_s, _AGAIN_S
        said = ""
        while True:
            try:
                return self._once(path, kind, body)
            except _Away as problem:
                if time.monotonic() + wait_s > end_s:
                    raise HubProblem(f"{problem} Try again later.") from None
                if self._say and str(problem) != said:
                    said = str(problem)
                    self._say(f"{said} It is tried again for up to {patience_s:.0f} s.")
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, _MOST_AGAIN_S)

    def _once(self, path: str, kind: type[Answered], body: bytes | None) -> Answered:
        request = urllib.request.Request(
            f"{self.url}api/v1/{path}",
            body,
            {
                "Authorization": f"token {self._token}",
                "Content-Type": "application/json",
            },
        )
        try:
            try:
                response = self._opener.open(request, timeout=_WAIT_S)
            except urllib.error.HTTPError as problem:
                response = problem
            with response:
                answer = response.read(_MOST_BYTES)
        except (OSError, http.client.HTTPException) as failure:
            reason: Any = getattr(failure, "reason", failure)
            raise _Away(f"{self.url} does not answer: {reason}.") from None
        if ANSWER_MARK not in response.headers:
            raise _Away(
                f"{self.url} answers {response.status}, and not as a course service: "
                "the hub may be starting, or its address is another."
            )
        if response.status >= 400:
            words = _words(answer) or f"{self.url} answers {response.status}."
            # it says itself that it can't do it now
            raise _Away(words) if response.status == 503 else HubProblem(words)
        try:
            return decode_json(answer, Decoder(kind))
        except NotJson:
            raise HubProblem(
                f"{self.url} is a course service of another version of warpbook."
            ) from None


class NotPublished(HubProblem):
    """No course of the person has the lab."""


class _Away(HubProblem):
    """The same request may be sent again."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token goes to the hub, and nowhere else."""

    def redirect_request(self, *_: object) -> None:
        return None


def _words(body: bytes) -> str:
    try:
        return decode_json(body, Decoder(_Problem)).error
    except NotJson:
        return ""
