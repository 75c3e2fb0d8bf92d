"""Asks the platform: its members, its line items, and to take scores."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec import Meta, Struct
from msgspec.json import Decoder
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPResponse

from warpbook_hub.errors import HubError
from warpbook_hub.lti.platform import (
    CUSTOM,
    LtiPlatform,
    PlatformMember,
    names_in,
    role_of,
    username_in,
)
from warpbook_monitors.budget import NotJson, decode_json
from warpbook_monitors.plain_text import bounded

if TYPE_CHECKING:
    from warpbook_hub.lti.tool_key import ToolKey

_AGS = "https://purl.imsglobal.org/spec/lti-ags/scope/"
_SCORE, _LINE_ITEM = f"{_AGS}score", f"{_AGS}lineitem"
_NRPS = "https://purl.imsglobal.org/spec/lti-nrps/scope/contextmembership.readonly"
_SCORE_TYPE = "application/vnd.ims.lis.v1.score+json"
_LINE_ITEM_TYPE = "application/vnd.ims.lis.v2.lineitem+json"
_LINE_ITEMS_TYPE = "application/vnd.ims.lis.v2.lineitemcontainer+json"
_MEMBERS_TYPE = "application/vnd.ims.lti-nrps.v2.membershipcontainer+json"
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_NEXT = re.compile(r'<([^<>]+)>[^,<]*;\s*rel="?next"?', re.IGNORECASE)
_TIMEOUT_S = 15.0
_MOST_BYTES = 8 << 20
_MOST_PAGES = 500
_MOST_MEMBERS = 5_000
_MOST_WORDS = 300
#: characters of a header
_MOST_LINKS = 4_000
#: a token is not used in its last seconds
_EARLY_S = 30.0

_ADVICE = {
    400: " The tool's registration there may not fit this hub's.",
    401: " See that the platform has the address of this hub's public keys.",
    403: " Allow the tool its names and roles, and its grade services there.",
    404: " What was asked for is not there any more.",
    409: " The platform has a later grade.",
    422: " The person may have left the course there.",
}

Value = TypeVar("Value")


class PlatformRefused(HubError):
    """The platform did not do what it was asked; the message says what it answered."""

    http_status = 502

    def __init__(
        self,
        words: str,
        status: int = 0,
        is_temporary: bool = True,
        retry_after_s: float = 0.0,
    ) -> None:
        """Take the answer.

        Args:
            words: what happened, for a person.
            status: of HTTP; 0 where there was no answer.
            is_temporary: it may well take the same later.
            retry_after_s: when, as it says itself.
        """
        super().__init__(words)
        self.status, self.is_temporary = status, is_temporary
        self.retry_after_s = retry_after_s


class ScoreToSend(Struct, frozen=True):
    """A score as it is sent."""

    subject: str
    #: None clears the one that is there
    points: float | None
    most_points: float
    stamped_ms: int
    #: the platform can't have it yet
    is_first_try: bool


class _Token(Struct):
    #: it becomes a header
    access_token: Annotated[str, Meta(pattern=r"^[\x21-\x7e]+$", max_length=8_000)]
    expires_in: float = 3600.0


class _Member(Struct):
    user_id: Annotated[str, Meta(min_length=1, max_length=300)]
    status: str | None = None
    roles: list[str] = []
    given_name: str | None = None
    family_name: str | None = None
    email: str | None = None
    lis_person_sourcedid: str | None = None
    message: list[dict[str, Any]] = []


class _Members(Struct):
    members: list[_Member]


class _LineItem(Struct):
    id: str


class PlatformClient:
    """Asks with tokens that it gets for what it signs."""

    def __init__(
        self, platform: LtiPlatform, key: ToolKey, timeout_s: float = _TIMEOUT_S
    ) -> None:
        """Take whom to ask; it needs a running event loop."""
        self._platform, self._key, self._timeout_s = platform, key, timeout_s
        self._http = AsyncHTTPClient(force_instance=True, max_body_size=_MOST_BYTES)
        #: by scope: the token, and until when it is used (monotonic seconds)
        self._tokens: dict[str, tuple[str, float]] = {}

    async def learners(self, url: str) -> tuple[PlatformMember, ...]:
        """Give the learners who are in a course of the platform now, of all pages.

        Raises:
            PlatformRefused: a page was refused, or there are too many.
        """
        learners: list[PlatformMember] = []
        page = url
        for _ in range(_MOST_PAGES):
            response = await self._ask("GET", page, _NRPS, accept=_MEMBERS_TYPE)
            for member in _decoded(response, _Members).members:
                is_there = member.status in (None, "Active")
                if is_there and role_of(member.roles) == "learner":
                    learners.append(self._learner(member))
            if len(learners) > _MOST_MEMBERS:
                raise PlatformRefused(
                    f"The platform lists more than {_MOST_MEMBERS:,} learners.",
                    is_temporary=False,
                )
            links = ", ".join(response.headers.get_list("Link"))
            following = _NEXT.search(links[:_MOST_LINKS])
            if following is None:
                return tuple(learners)
            page = following[1]
        raise PlatformRefused(
            "The pages of the platform's roster do not end.", is_temporary=False
        )

    async def line_item(
        self, container_url: str, publication: str, label: str, most_points: float
    ) -> str:
        """Give the URL of a lab's line item, which is made where there is none.

        Raises:
            PlatformRefused: it was refused.
        """
        resource = f"warpbook-{publication}"
        joined = "&" if "?" in container_url else "?"
        query = f"{container_url}{joined}{urlencode({'resource_id': resource})}"
        response = await self._ask("GET", query, _LINE_ITEM, accept=_LINE_ITEMS_TYPE)
        there = _decoded(response, list[_LineItem])
        if there:
            return there[0].id
        body = msgspec.json.encode(
            {"scoreMaximum": most_points, "label": label, "resourceId": resource}
        )
        response = await self._ask(
            "POST",
            container_url,
            _LINE_ITEM,
            body,
            content_type=_LINE_ITEM_TYPE,
            accept=_LINE_ITEM_TYPE,
        )
        return _decoded(response, _LineItem).id

    async def post_score(self, line_item_url: str, score: ScoreToSend) -> str:
        """Send a score; give what came of it, in words.

        That the platform has it already is no failure of one that was sent before.

        Raises:
            PlatformRefused: it was refused.
        """
        at = datetime.fromtimestamp(score.stamped_ms / 1000, timezone.utc)
        given: dict[str, float] = {}
        if score.points is not None:
            given = {"scoreGiven": score.points, "scoreMaximum": score.most_points}
        body = msgspec.json.encode(
            {
                **given,
                "userId": score.subject,
                "timestamp": at.isoformat(timespec="milliseconds"),
                "activityProgress": "Submitted",
                "gradingProgress": "FullyGraded" if given else "NotReady",
            }
        )
        place, question, query = line_item_url.partition("?")
        url = f"{place}/scores{question}{query}"
        try:
            response = await self._ask(
                "POST", url, _SCORE, body, content_type=_SCORE_TYPE
            )
        except PlatformRefused as refusal:
            if refusal.status == 409 and not score.is_first_try:
                return "409: it has this score already"
            raise
        return f"{response.code}: taken"

    def _learner(self, member: _Member) -> PlatformMember:
        own: dict[str, Any] = {
            "sub": member.user_id,
            **{
                name: getattr(member, name)
                for name in (
                    "given_name",
                    "family_name",
                    "email",
                    "lis_person_sourcedid",
                )
            },
        }
        for message in member.message:
            if isinstance(message.get(CUSTOM), dict):
                own[CUSTOM] = message[CUSTOM]
        username = username_in(own, self._platform.username_claim)
        return PlatformMember(member.user_id, username, **names_in(own))

    async def _ask(
        self,
        method: str,
        url: str,
        scope: str,
        body: bytes | None = None,
        content_type: str = "",
        accept: str = "application/json",
    ) -> HTTPResponse:
        """Ask with a token; with a new one where it is taken for expired."""
        # the token is for nobody else
        if not self._platform.owns(url):
            raise PlatformRefused(
                f"The platform named a service elsewhere: {bounded(url, 200)}. If it "
                "is the platform's own, name its host in `service_hosts`.",
                is_temporary=False,
            )
        for is_last in (False, True):
            token = await self._token(scope)
            headers = {"Authorization": f"Bearer {token}", "Accept": accept}
            if body is not None:
                headers["Content-Type"] = content_type
            response = await self._fetch(method, url, headers, body)
            if response.code != 401 or is_last:
                break
            self._tokens.pop(scope, None)
        if not 200 <= response.code < 300:
            raise _refusal(response)
        return response

    async def _token(self, scope: str) -> str:
        kept = self._tokens.get(scope)
        if kept is not None and time.monotonic() < kept[1]:
            return kept[0]
        platform = self._platform
        audience = platform.token_audience or platform.token_url
        form = {
            "grant_type": "client_credentials",
            "client_assertion_type": _ASSERTION,
            "client_assertion": self._key.assertion(platform.client_id, audience),
            "scope": scope,
        }
        headers = {
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        body = urlencode(form).encode()
        response = await self._fetch("POST", platform.token_url, headers, body)
        if response.code != 200:
            # a token is for all scores, so its failure is no single score's
            refusal = _refusal(response, "No token for the platform was given. ")
            refusal.is_temporary = True
            raise refusal
        token = _decoded(response, _Token)
        until_s = time.monotonic() + token.expires_in - _EARLY_S
        self._tokens[scope] = (token.access_token, until_s)
        return token.access_token

    async def _fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> HTTPResponse:
        try:
            return await self._http.fetch(
                url,
                method=method,
                headers=dict(headers),
                body=body,
                connect_timeout=self._timeout_s,
                request_timeout=self._timeout_s,
                # a token goes to whom it is for
                follow_redirects=False,
                raise_error=False,
                decompress_response=False,
            )
        except (HTTPClientError, OSError) as problem:
            words = bounded(str(problem), _MOST_WORDS)
            raise PlatformRefused(f"The platform does not answer: {words}.") from None


def _refusal(response: HTTPResponse, words: str = "") -> PlatformRefused:
    status = response.code
    said = bounded(response.body.decode(errors="replace").strip(), _MOST_WORDS)
    after = response.headers.get("Retry-After", "")
    advice = _ADVICE.get(status, "")
    return PlatformRefused(
        f"{words}It answered {status}{f': {said}' if said else ''}.{advice}",
        status,
        # 401 also with a new token: it may not know our key yet
        is_temporary=status in (401, 408, 425, 429) or status >= 500,
        retry_after_s=float(after) if after.isdecimal() and len(after) < 6 else 0.0,
    )


def _decoded(response: HTTPResponse, kind: type[Value]) -> Value:
    try:
        return decode_json(response.body, Decoder(kind))
    except NotJson as problem:
        words = bounded(str(problem), _MOST_WORDS)
        raise PlatformRefused(
            f"The platform's answer can't be read: {words}.", response.code
        ) from None
