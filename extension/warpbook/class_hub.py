"""Hands labs in to a course's hub: from a notebook, or from a terminal anywhere."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from urllib.parse import quote, urlsplit

from msgspec import Struct

from warpbook.ai_calls import ai_log
from warpbook.hub_client import Answered, HubAway, HubClient, HubProblem, HubRefused
from warpbook.hub_protocol import (
    LEARNERS,
    HandIn,
    LabAiPolicy,
    LeaseLonger,
    Nothing,
    OwnCourse,
    OwnLab,
    OwnLease,
    Reference,
    SubmissionReceipt,
    SubmissionState,
)

#: set by the hub for the servers that it starts
URL = "WARPBOOK_HUB_URL"
#: of the course's pages, where they are on a host of their own
PAGES = "WARPBOOK_HUB_PAGES"
SERVER_TOKEN = "JUPYTERHUB_API_TOKEN"
#: of a person on their own machine
OWN_TOKEN = "WARPBOOK_HUB_TOKEN"
_SERVICE = "services/warpbook/"
_WAIT_S = 30.0
#: longest time of all tries, where the person sees progress and where not
_PATIENCE_S, _SILENT_S = 600.0, 7.0


class PublishedLab(Struct, frozen=True):
    """A lab of a course."""

    course: str
    id: str
    lab: str
    title: str
    is_open: bool
    #: for the person; 0: not known
    opens_ms: int = 0


def hub_here(say: Callable[[str], None] | None = None) -> ClassHub | None:
    """Give the hub that started this server; None where no course service is.

    Args:
        say: see `ClassHub`.
    """
    url, token = os.environ.get(URL), os.environ.get(SERVER_TOKEN)
    if not (url and token):
        return None
    return ClassHub(url, token, os.environ.get(PAGES, ""), say)


def service_url(url: str) -> str:
    """Return the address of the course service, with a slash at its end.

    Args:
        url: of the hub, or of its course service.

    Raises:
        HubProblem: it is no address.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise HubProblem(f"{url}: no address of a hub, such as https://host:8000/.")
    path = parts.path.removesuffix("/") + "/"
    if "/services/" not in path:
        path = path.removesuffix("hub/") + _SERVICE
    return f"{parts.scheme}://{parts.netloc}{path}"


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
        #: of the course service, with a slash at its end
        self.url = service_url(url)
        path = urlsplit(self.url).path
        self._pages = pages_url or path
        self._say = say
        self._client = HubClient(self.url, token, LEARNERS, _WAIT_S, uses_proxies=True)

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
            PublishedLab(
                of,
                one.id,
                one.lab,
                one.title,
                one.is_open,
                0 if one.window is None else one.window.opens_ms,
            )
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
    ) -> SubmissionReceipt:
        """Hand in a source; the receipt is given once it is on the hub's disk.

        What AI assistants asked about the lab since it opened is sent along.

        Raises:
            HubProblem: the hub does not take it.
        """
        # the same number again: asked twice it is kept once
        told = ai_log(lab.lab, lab.opens_ms)
        message = HandIn(source, secrets.token_hex(16), replace, told)
        path = f"courses/{quote(lab.course)}/labs/{quote(lab.id)}/submissions"
        return self._ask(path, SubmissionReceipt, message)

    def state(self, lab: PublishedLab, submission: str) -> SubmissionState:
        """Tell how it stands with a submission.

        Raises:
            HubProblem: the hub does not say.
        """
        path = f"courses/{quote(lab.course)}/submissions/{quote(submission)}"
        return self._ask(path, SubmissionState)

    def reference(self, lab: PublishedLab) -> str:
        """Give the reference; empty where the hub has none yet.

        Raises:
            HubProblem: it is not shown yet, or the hub does not answer.
        """
        path = f"courses/{quote(lab.course)}/labs/{quote(lab.id)}/reference"
        return self._ask(path, Reference).reference

    def page(self, lab: PublishedLab, submission: str) -> str:
        """Give the address of a submission's page, or its path on this host."""
        return f"{self.course_page(lab.course)}/submissions/{quote(submission)}"

    def course_page(self, course: str) -> str:
        """Give the address of a course's page, or its path on this host."""
        return f"{self._pages}courses/{quote(course)}"

    def courses(self) -> list[OwnCourse]:
        """Give one's own courses.

        Raises:
            HubProblem: the hub does not tell.
        """
        return self._ask("courses", list[OwnCourse])

    def labs(self, course: str) -> list[OwnLab]:
        """Give the labs of a course that one may see.

        Raises:
            HubProblem: the hub does not tell.
        """
        return self._ask(f"courses/{quote(course)}/labs", list[OwnLab])

    def ai_policies(self) -> list[LabAiPolicy]:
        """Give what AI assistants may do with each lab of one's own courses.

        Raises:
            HubProblem: the hub does not tell.
        """
        return self._ask("ai-policies", list[LabAiPolicy])

    def lease(
        self, course: str, what: str = "", request: LeaseLonger | None = None
    ) -> OwnLease:
        """Take, extend or give back a GPU, or look.

        Args:
            course: for which it is used.
            what: "take", "extend" or "return"; empty to look.
            request: of "take" and "extend".

        Raises:
            HubProblem: the hub does not do it.
        """
        path = f"courses/{quote(course)}/gpus"
        if not what:
            return self._ask(path, OwnLease)
        return self._ask(f"{path}/{what}", OwnLease, request or Nothing())

    def _ask(
        self, path: str, kind: type[Answered], message: Struct | None = None
    ) -> Answered:
        patience_s = _PATIENCE_S if self._say else _SILENT_S
        try:
            return self._client.ask(path, kind, message, patience_s, self._say)
        except HubAway as problem:
            raise HubAway(f"{problem} Try again later.") from None


class NotPublished(HubRefused):
    """No course of the person has the lab."""
