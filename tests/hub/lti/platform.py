"""A small learning platform: it launches, lists its members, and takes grades.

It checks what a real one checks: assertions and their use once, tokens and scopes,
media types, and that a score is later than the one it has. A test puts answers that
fail in line.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlencode

import jwt
import requests
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler

from tests.programs import free_port

CLIENT, DEPLOYMENT, CONTEXT = "client-7", "deployment-1", "context-9"
LEARNER = "http://purl.imsglobal.org/vocab/lis/v2/membership#Learner"
TEACHER = "http://purl.imsglobal.org/vocab/lis/v2/membership#Instructor"
_LTI = "https://purl.imsglobal.org/spec/lti/claim/"
_AGS = "https://purl.imsglobal.org/spec/lti-ags/scope/"
_NRPS = "https://purl.imsglobal.org/spec/lti-nrps/scope/contextmembership.readonly"
_SCORE_FIELDS = {"userId", "timestamp", "activityProgress", "gradingProgress"}
#: without them a score that was there is cleared
_GIVEN = {"scoreGiven", "scoreMaximum"}
_PAGE = 2


def _is_score(fields: set[str]) -> bool:
    return fields in (_SCORE_FIELDS, _SCORE_FIELDS | _GIVEN)


@dataclass
class Member:
    """Somebody of the platform's course."""

    subject: str
    email: str
    roles: tuple[str, ...] = (LEARNER,)
    status: str = "Active"


def _drawn_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


#: of all platforms here: to draw one takes a while
_first_key = cache(_drawn_key)


@dataclass
class Platform:
    """One that runs in a thread; a test reads and sets what it has."""

    members: list[Member]
    port: int = field(default_factory=free_port)
    #: by line item and person: the scores that were taken
    scores: dict[tuple[str, str], list[dict[str, Any]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    #: by id: as it was made
    line_items: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: by service: statuses or texts that are answered next, in place of what is right;
    #: 0 is no answer
    failures: dict[str, list[int | str]] = field(
        default_factory=lambda: defaultdict(list)
    )
    #: by service: what happens, once, while it is asked
    meanwhile: dict[str, Callable[[], object]] = field(default_factory=dict)
    #: each request, by service
    requests: list[str] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    #: where the tool's keys are
    key_set_url: str = ""
    key_set: dict[str, Any] | None = None
    #: line items so far
    made: int = 0
    pages: int = 0
    #: scores are taken, and it is not answered that they are
    is_silent: bool = False
    #: of a roster's second page, in place of the platform's own
    pages_host: str = ""

    def __post_init__(self) -> None:
        self.key = _first_key()
        self.url = f"http://127.0.0.1:{self.port}"
        self._jtis: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def description(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "client_id": CLIENT,
            "deployments": [DEPLOYMENT],
            "authorize_url": f"{self.url}/auth",
            "token_url": f"{self.url}/token",
            "jwks_url": f"{self.url}/jwks",
        }

    def replace_key(self) -> None:
        """Sign with another key from now on."""
        self.key = _drawn_key()

    def start(self) -> None:
        up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(up)))
        self._thread.start()
        assert up.wait(60)

    def stop(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def last(self, subject: str, line_item: str = "1") -> dict[str, Any]:
        """Give the score of a person that counts."""
        return self.scores[line_item, subject][-1]

    def id_token(
        self, member: Member, nonce: str, key: Any = None, **changed: Any
    ) -> str:
        now_s = int(time.time())
        claims = {
            "iss": self.url,
            "aud": CLIENT,
            "sub": member.subject,
            "exp": now_s + 300,
            "iat": now_s,
            "nonce": nonce,
            "email": member.email,
            "given_name": member.subject.title(),
            "family_name": "",
            f"{_LTI}message_type": "LtiResourceLinkRequest",
            f"{_LTI}version": "1.3.0",
            f"{_LTI}deployment_id": DEPLOYMENT,
            f"{_LTI}target_link_uri": "http://ignored/",
            f"{_LTI}resource_link": {"id": "link-1"},
            f"{_LTI}roles": list(member.roles),
            f"{_LTI}context": {"id": CONTEXT, "title": "GPUs <b>101</b>"},
            "https://purl.imsglobal.org/spec/lti-ags/claim/endpoint": {
                "scope": [f"{_AGS}score", f"{_AGS}lineitem"],
                "lineitems": f"{self.url}/lineitems",
            },
            "https://purl.imsglobal.org/spec/lti-nrps/claim/namesroleservice": {
                "context_memberships_url": f"{self.url}/members",
                "service_versions": ["2.0"],
            },
        }
        renamed = {
            f"{_LTI}{name}" if name == "deployment_id" else name: value
            for name, value in changed.items()
        }
        merged = {**claims, **renamed}
        return jwt.encode(merged, key or self.key, "RS256", headers={"kid": "p1"})

    def tool_keys(self) -> dict[str, Any]:
        if self.key_set is not None:
            return self.key_set
        answer = requests.get(self.key_set_url, timeout=60)
        answer.raise_for_status()
        keys: dict[str, Any] = answer.json()
        return keys

    def token_for(self, form: dict[str, str]) -> str | None:
        """Give a token for an assertion; None where something about it is wrong."""
        assertion = form["client_assertion"]
        kid = jwt.get_unverified_header(assertion)["kid"]
        (key,) = [k for k in self.tool_keys()["keys"] if k["kid"] == kid]
        try:
            claims = jwt.decode(
                assertion,
                jwt.PyJWK(key).key,
                ["RS256"],
                audience=f"{self.url}/token",
                issuer=CLIENT,
                options={"require": ["exp", "iat", "jti", "sub"]},
            )
        except jwt.PyJWTError:
            return None
        if claims["sub"] != CLIENT or claims["jti"] in self._jtis:
            return None
        self._jtis.add(claims["jti"])
        token = secrets.token_hex(8)
        self.tokens[token] = form["scope"]
        return token

    async def _serve(self, up: threading.Event) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        routes = [
            ("/jwks", Keys),
            ("/auth", Login),
            ("/token", Tokens),
            ("/members", Members),
            ("/lineitems", LineItems),
            ("/lineitems/([0-9]+)/scores", Scores),
        ]
        server = HTTPServer(Application(routes, platform=self))
        server.listen(self.port, "127.0.0.1")
        up.set()
        await self._ended.wait()
        server.stop()
        await server.close_all_connections()


class Base(RequestHandler):
    name, scope = "", ""

    async def prepare(self) -> None:
        self.platform: Platform = self.settings["platform"]
        self.platform.requests.append(self.name)
        self.platform.meanwhile.pop(self.name, bool)()
        failures = self.platform.failures[self.name]
        if failures:
            failure = failures.pop(0)
            if isinstance(failure, str):
                self.finish(failure)
                return
            if failure == 0:
                await asyncio.sleep(3600)
            self.refuse(failure, f"it fails with {failure}")
            return
        if self.scope:
            token = self.request.headers.get("Authorization", "").removeprefix(
                "Bearer "
            )
            if self.platform.tokens.get(token) != self.scope:
                self.refuse(401, "not this token")

    def refuse(self, status: int, words: str) -> None:
        self.set_status(status)
        self.finish({"error": words})

    def is_of(self, media_type: str) -> bool:
        return self.request.headers.get("Content-Type") == media_type


class Keys(Base):
    name = "keys"

    def get(self) -> None:
        public = RSAAlgorithm.to_jwk(self.platform.key.public_key(), as_dict=True)
        self.finish({"keys": [{**public, "kid": "p1", "alg": "RS256", "use": "sig"}]})


class Login(Base):
    def get(self) -> None:
        """Answer with what the form would send; a test sends it as the browser does."""
        given = {name: self.get_argument(name) for name in ("nonce", "state")}
        assert self.get_argument("response_mode") == "form_post"
        subject = self.get_argument("login_hint")
        (member,) = [m for m in self.platform.members if m.subject == subject]
        token = self.platform.id_token(member, given["nonce"])
        self.finish(
            {"id_token": token, **given, "to": self.get_argument("redirect_uri")}
        )


class Tokens(Base):
    name = "token"

    def post(self) -> None:
        form = {
            name: values[0]
            for name, values in parse_qs(self.request.body.decode()).items()
        }
        token = self.platform.token_for(form)
        if token is None:
            self.refuse(400, "invalid_client")
            return
        self.finish({"access_token": token, "expires_in": 3600})


class Members(Base):
    name, scope = "members", _NRPS

    def get(self) -> None:
        self.platform.pages += 1
        first = int(self.get_argument("from", "0"))
        everybody = self.platform.members
        if first + _PAGE < len(everybody):
            host = self.platform.pages_host or self.platform.url
            following = f"{host}/members?{urlencode({'from': first + _PAGE})}"
            others = f'<{self.platform.url}/d>; rel="differences"'
            self.set_header("Link", f'{others}, <{following}>; rel="next"')
        members = [
            {
                "user_id": m.subject,
                "email": m.email,
                "roles": list(m.roles),
                "status": m.status,
                "given_name": m.subject.title(),
            }
            for m in everybody[first : first + _PAGE]
        ]
        self.finish({"id": self.request.full_url(), "members": members})


class LineItems(Base):
    name, scope = "line items", f"{_AGS}lineitem"

    def get(self) -> None:
        resource = self.get_argument("resource_id")
        line_items = [
            i for i in self.platform.line_items.values() if i["resourceId"] == resource
        ]
        self.set_header("Content-Type", "application/json")
        # of JSON a list, which tornado's `finish` does not take
        self.finish(b"[]" if not line_items else json.dumps(line_items).encode())

    def post(self) -> None:
        if not self.is_of("application/vnd.ims.lis.v2.lineitem+json"):
            self.refuse(415, "what is this")
            return
        made = json.loads(self.request.body)
        self.platform.made += 1
        number = str(self.platform.made)
        made["id"] = f"{self.platform.url}/lineitems/{number}?type=quiz"
        self.platform.line_items[number] = made
        self.set_status(201)
        self.finish(made)


class Scores(Base):
    name, scope = "scores", f"{_AGS}score"

    async def post(self, number: str) -> None:
        score = json.loads(self.request.body)
        if not self.is_of("application/vnd.ims.lis.v1.score+json"):
            self.refuse(415, "what is this")
        elif number not in self.platform.line_items:
            self.refuse(404, "no such line item")
        elif not _is_score(set(score)) or not score["timestamp"].endswith("+00:00"):
            self.refuse(400, "no score")
        elif score["userId"] not in {m.subject for m in self.platform.members}:
            self.refuse(422, f"no such user <i>{score['userId']}</i>")
        else:
            taken = self.platform.scores[number, score["userId"]]
            # of a time it keeps whole seconds
            if taken and taken[-1]["timestamp"][:19] >= score["timestamp"][:19]:
                self.refuse(409, "later ones are here")
                return
            taken.append(score)
            if self.platform.is_silent:
                await asyncio.sleep(3600)
            self.set_status(200)
