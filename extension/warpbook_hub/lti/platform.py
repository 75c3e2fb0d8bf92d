"""The platform that a hub belongs to, and what a launch of it says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from warpbook_monitors.plain_text import bounded

#: names, in the environment of the course service, a platform as JSON
PLATFORM = "WARPBOOK_HUB_LTI"
_LTI = "https://purl.imsglobal.org/spec/lti/claim/"
DEPLOYMENT = f"{_LTI}deployment_id"
CUSTOM = f"{_LTI}custom"
_CONTEXT, _ROLES = f"{_LTI}context", f"{_LTI}roles"
_GRADES = "https://purl.imsglobal.org/spec/lti-ags/claim/endpoint"
_NAMES = "https://purl.imsglobal.org/spec/lti-nrps/claim/namesroleservice"
_ROLE = "http://purl.imsglobal.org/vocab/lis/v2/membership"
_ASSISTANT = f"{_ROLE}/Instructor#TeachingAssistant"
_CUSTOM_KEY = "custom_"
_MOST_NAME = 100
_MOST_FILE_BYTES = 64 << 10
_URL = re.compile(r"[\x21-\x7e]{1,2000}")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")

_URLS = ("authorize_url", "token_url", "jwks_url")
Text = Annotated[str, Meta(max_length=300)]
Url = Annotated[str, Meta(max_length=2_000)]
#: empty: none that counts here
Role = Literal["", "learner", "assistant", "instructor"]


class BadPlatform(Exception):
    """The file that describes the platform can't be used; the message says why."""


class LtiPlatform(Struct, frozen=True, forbid_unknown_fields=True):
    """What the platform gave when the hub was registered there."""

    issuer: str
    client_id: str
    #: ids of deployments that may launch
    deployments: tuple[str, ...]
    authorize_url: str
    token_url: str
    jwks_url: str
    #: the claim with the user name: `email`, `sub`, another one, or `custom_NAME`
    username_claim: str = "email"
    #: whom assertions are for, where the platform wants another than `token_url`
    token_audience: str = ""
    #: hosts of roster and grades, such as https://school.lms.example, where they are
    #: not those of the URLs above
    service_hosts: tuple[str, ...] = ()

    def owns(self, url: str) -> bool:
        """Whether a URL is on a host of the platform, to which its tokens may go."""
        own = (self.issuer, self.authorize_url, self.token_url, self.jwks_url)
        return is_safe_url(url) and _host(url) in {
            _host(given) for given in (*own, *self.service_hosts)
        }


class Launch(Struct, frozen=True, forbid_unknown_fields=True):
    """A launch that the hub has verified, as it goes to the course service."""

    course: Text
    issuer: Text
    subject: Annotated[str, Meta(min_length=1, max_length=300)]
    username: Annotated[str, Meta(max_length=64)]
    first_name: Text
    last_name: Text
    email: Text
    role: Role
    context: Text
    title: Text
    memberships_url: Url
    line_items_url: Url
    #: the line item of the link that was opened, and the lab that it names
    line_item_url: Url
    lab: Text


class LaunchedPerson(Struct, frozen=True):
    """The answer to a launch: the user name with which the person is logged in."""

    username: str


class PlatformMember(Struct, frozen=True):
    """Somebody of the platform's course."""

    subject: str
    #: empty where the platform does not give it
    username: str
    first_name: str
    last_name: str
    email: str


def read_platform(file: Path) -> LtiPlatform:
    """Read the description of a platform, a JSON object of up to 64 KiB.

    Raises:
        BadPlatform: it can't be read or used.
    """
    try:
        with file.open("rb") as opened:
            text = opened.read(_MOST_FILE_BYTES)
        platform = msgspec.json.decode(text, type=LtiPlatform)
    except OSError as problem:
        raise BadPlatform(f"{file}: {problem.strerror}.") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise BadPlatform(f"{file}: {problem}.") from None
    for name in ("issuer", "client_id", "deployments", "username_claim"):
        if not getattr(platform, name):
            raise BadPlatform(f"{file}: {name} is empty.")
    named = [(name, getattr(platform, name)) for name in _URLS]
    hosts = [("service_hosts", url) for url in platform.service_hosts]
    for name, url in named + hosts:
        if not is_safe_url(url):
            raise BadPlatform(
                f"{file}: {name} is a URL such as https://lms.example.org/. Without "
                "HTTPS only a platform of this machine is asked."
            )
    return platform


def username_in(claims: Mapping[str, Any], key: str) -> str:
    """Give the user name that a launch or a member has; empty where there is none."""
    if key.startswith(_CUSTOM_KEY):
        claims, key = _object(claims, CUSTOM), key.removeprefix(_CUSTOM_KEY)
    return _string(claims, key).strip().lower()


def launch_of(
    claims: Mapping[str, Any], platform: LtiPlatform, course: str, username: str
) -> Launch:
    """Read a launch whose signature, nonce and deployment were checked.

    Raises:
        msgspec.ValidationError: something in it is too long.
    """
    context, grades = _object(claims, _CONTEXT), _object(claims, _GRADES)
    roles = claims.get(_ROLES)
    launch = {
        "course": course,
        "issuer": platform.issuer,
        "subject": _string(claims, "sub"),
        "username": username,
        **names_in(claims),
        "role": role_of(roles if isinstance(roles, list) else []),
        "context": _string(context, "id"),
        "title": bounded(_string(context, "title"), _MOST_NAME),
        "memberships_url": _url(_object(claims, _NAMES), "context_memberships_url"),
        "line_items_url": _url(grades, "lineitems"),
        "line_item_url": _url(grades, "lineitem"),
        "lab": _string(_object(claims, CUSTOM), "lab"),
    }
    return msgspec.convert(launch, Launch)


def names_in(claims: Mapping[str, Any]) -> dict[str, str]:
    """Give the names of a person, as a roster has them."""
    return {
        "first_name": bounded(_string(claims, "given_name"), _MOST_NAME),
        "last_name": bounded(_string(claims, "family_name"), _MOST_NAME),
        "email": bounded(_string(claims, "email"), _MOST_NAME),
    }


def role_of(roles: list[Any]) -> Role:
    """Give what somebody is in the course, of roles with long or short names."""
    if _ASSISTANT in roles or "TeachingAssistant" in roles:
        return "assistant"
    if f"{_ROLE}#Instructor" in roles or "Instructor" in roles:
        return "instructor"
    if f"{_ROLE}#Learner" in roles or "Learner" in roles:
        return "learner"
    return ""


def is_safe_url(url: str) -> bool:
    """Whether a text is a URL that can be asked without being overheard."""
    if _URL.fullmatch(url) is None:
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    is_http = parts.scheme == "http" and parts.hostname in _LOOPBACK
    return bool(parts.hostname) and (parts.scheme == "https" or is_http)


def _host(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _object(claims: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = claims.get(name)
    return value if isinstance(value, dict) else {}


def _string(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) else ""


def _url(claims: Mapping[str, Any], name: str) -> str:
    url = _string(claims, name)
    return url if is_safe_url(url) else ""
