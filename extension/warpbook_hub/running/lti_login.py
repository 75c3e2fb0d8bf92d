"""Log-in by a launch from a learning platform (LTI 1.3)."""

from __future__ import annotations

import asyncio
import contextlib
import grp
import os
import posixpath
import pwd
from collections.abc import Callable, Set
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec
from jupyterhub.handlers import BaseHandler
from ltiauthenticator.lti13.auth import LTI13Authenticator
from ltiauthenticator.lti13.error import LoginError
from ltiauthenticator.lti13.handlers import LTI13CallbackHandler, LTI13LoginInitHandler
from tornado.web import HTTPError
from traitlets import Instance

from warpbook.hub_client import HubAway, HubClient, HubRefused
from warpbook.hub_protocol import LTI
from warpbook_hub.lti.platform import (
    DEPLOYMENT,
    Launch,
    LaunchedPerson,
    launch_of,
    username_in,
)
from warpbook_hub.running.plan import HubPlan
from warpbook_monitors.plain_text import bounded

Value = TypeVar("Value")


_WAIT_S = 15.0
#: of people; the others are of the system, root's and nobody's among them
_PEOPLE_UIDS = range(1000, 60_000)
#: whose members are as good as root
_ADMIN_GROUPS = frozenset({"sudo", "wheel", "admin", "docker", "lxd"})
_NO_KEYS = (
    "The platform's keys can't be read in time. Open the course from the platform "
    "again in a moment."
)
_AWAY = (
    "The course service does not answer, and it says who is who. Open the course from "
    "the platform again in a moment."
)


class Busy(Exception):
    """Too many calls wait, or the call took too long."""


class BoundedThreads:
    """Runs calls on threads of its own."""

    def __init__(self, name: str, threads: int, most: int) -> None:
        """Start none yet; `most` calls are under way or wait."""
        self._executor = ThreadPoolExecutor(threads, name)
        self._most = most
        self._count = 0

    async def run(
        self, call: Callable[[], Value], most_s: float
    ) -> asyncio.Future[Value]:
        """Wait for a call; give its future, which is done and may hold an exception.

        Args:
            call: to run.
            most_s: how long it may wait and take. A call that has begun then goes on
                and keeps its thread, and its place here, until it ends.

        Raises:
            Busy: too many calls wait, or it takes longer.
        """
        if self._count >= self._most:
            raise Busy
        self._count += 1
        future = asyncio.get_running_loop().run_in_executor(self._executor, call)
        future.add_done_callback(self._leave)
        done, _ = await asyncio.wait([future], timeout=most_s)
        if not done:
            raise Busy
        return future

    def _leave(self, future: asyncio.Future[Value]) -> None:
        self._count -= 1
        if not future.cancelled():
            # nobody may be left who asks for it
            future.exception()


#: anybody may send a form that has to be checked
_CHECKS = BoundedThreads("warpbook-hub-launch", threads=8, most=300)


class LaunchBegins(LTI13LoginInitHandler):  # type: ignore[misc]
    """Sends a browser to the platform, with cookies that come back with its form."""

    def authorize_redirect(self, **given: Any) -> None:
        """Send it there as the tool that we are, whatever the platform said."""
        (given["client_id"],) = self.authenticator.client_id
        super().authorize_redirect(**given)

    def _set_oauth_cookie(self, key: str, value: str) -> None:
        # the form comes from another site; browsers take such cookies by HTTPS alone
        is_https = self.authenticator.uri_scheme == "https"
        more = {"samesite": "None", "secure": True} if is_https else {}
        self._set_cookie(
            key, value, expires_days=1, httponly=True, encrypted=True, **more
        )


class LaunchEnds(LTI13CallbackHandler):  # type: ignore[misc]
    """Takes what the platform has signed."""

    async def post(self) -> None:
        """Check the launch on a thread, as the platform is asked for its keys."""
        check = super().decode_and_validate_launch_request
        try:
            self._checked = await _CHECKS.run(check, _WAIT_S)
        except Busy:
            raise HTTPError(503, _NO_KEYS) from None
        await super().post()

    def decode_and_validate_launch_request(self) -> dict[str, Any]:
        try:
            claims: dict[str, Any] = self._checked.result()
        except (OSError, ValueError):
            raise HTTPError(503, _NO_KEYS) from None
        return claims

    def get_next_url(self, user: Any = None) -> str:
        """Give where the link leads, by way of the course's pages.

        A tool URL that takes forms alone is no page.
        """
        next_url: str = super().get_next_url(user)
        launches = f"{self.hub.base_url}lti13/"
        if posixpath.normpath(urlsplit(next_url).path).startswith(launches):
            next_url = BaseHandler.get_next_url(self, user)
        # the course's pages know a browser by a cookie of their own
        plan = self.authenticator.plan
        return f"{plan.pages_url}lti/enter?{urlencode({'next': next_url})}"


class PlatformLaunch(LTI13Authenticator):  # type: ignore[misc]
    """Lets in whom the platform sends, once the course service has noted it."""

    login_handler = LaunchBegins
    callback_handler = LaunchEnds
    plan = Instance(HubPlan, config=True, help="of the hub")

    def get_custom_html(self, base_url: str) -> str:
        """Say where to begin, on the hub's own log-in page."""
        return "<p>Open the course from your learning platform.</p>"

    def get_username(self, token: dict[str, Any]) -> str:
        """Give the name that the platform gives; no other claim takes its place."""
        name = username_in(token, self.username_key)
        if not name:
            raise LoginError(
                f"The platform gives no `{self.username_key}`. Allow the tool to see "
                "it there, or name another claim as `username_claim`."
            )
        return name

    async def authenticate(
        self, handler: Any, data: dict[str, Any] | None = None
    ) -> str:
        """Give the user name of who launches; the token's signature was checked."""
        claims, plan = data or {}, self.plan
        assert plan.platform is not None
        if claims.get(DEPLOYMENT) not in plan.platform.deployments:
            raise HTTPError(403, "This deployment of the platform may not launch.")
        name = self.get_username(claims)
        try:
            launch = launch_of(claims, plan.platform, plan.course, name)
        except msgspec.ValidationError as problem:
            raise HTTPError(400, f"The launch can't be used: {problem}.") from None
        return await self._noted(launch)

    async def _noted(self, launch: Launch) -> str:
        """Have the course service note it; return the name that it gives."""
        token = self.plan.token_file.read_text().strip()
        client = HubClient(self.plan.service_url, token, LTI, _WAIT_S)
        try:
            person = await asyncio.get_running_loop().run_in_executor(
                None, client.ask, "launch", LaunchedPerson, launch
            )
        except HubRefused as problem:
            raise HTTPError(403, bounded(str(problem), 300)) from None
        except HubAway:
            raise HTTPError(503, _AWAY) from None
        return checked_account(self.plan, person.username)


def checked_account(plan: HubPlan, name: str) -> str:
    """Give the name of somebody whose server may run under it.

    Raises:
        HTTPError: it would run as nobody, as the system, or with rights over it.
    """
    if plan.users == "system":
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            raise HTTPError(403, f"`{name}` has no account here yet.") from None
        problem = account_problem(plan, account.pw_uid, _groups(account))
        if problem:
            raise HTTPError(403, f"`{name}` {problem}.")
    return name


def account_problem(plan: HubPlan, uid: int, groups: Set[str]) -> str:
    """Tell why nobody may log in from a platform as an account; empty: they may."""
    if uid in (plan.user_id(plan.service_user), plan.user_id(plan.grader_user)):
        return "is an account of the hub"
    if uid not in _PEOPLE_UIDS:
        return "is an account of the system"
    if groups & _ADMIN_GROUPS:
        return f"runs this machine (group {min(groups & _ADMIN_GROUPS)})"
    return ""


def _groups(account: pwd.struct_passwd) -> set[str]:
    names = set()
    for gid in os.getgrouplist(account.pw_name, account.pw_gid):
        # a group may have no name
        with contextlib.suppress(KeyError):
            names.add(grp.getgrgid(gid).gr_name)
    return names


def configure(c: Any, plan: HubPlan) -> None:
    """Set JupyterHub up for the platform of a plan."""
    platform = plan.platform
    assert platform is not None
    c.JupyterHub.authenticator_class = PlatformLaunch
    c.PlatformLaunch.plan = plan
    c.PlatformLaunch.issuer = platform.issuer
    c.PlatformLaunch.client_id = {platform.client_id}
    c.PlatformLaunch.authorize_url = platform.authorize_url
    c.PlatformLaunch.jwks_endpoint = platform.jwks_url
    c.PlatformLaunch.username_key = platform.username_claim
    c.PlatformLaunch.uri_scheme = plan.url.partition(":")[0]
