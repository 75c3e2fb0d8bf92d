"""`api/v1/health` and `api/v1/ready`: for a hub's or Kubernetes' probe.

They need no credentials, so they tell nobody but how the server is; paths and processes
are in what those are told who are logged in.
"""

from __future__ import annotations

from jupyter_server.auth.decorator import allow_unauthenticated
from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import ensure_async
from tornado import web

from warpbook.server.web.cross_site import refuse_cross_site
from warpbook.server.web.page_request import Readiness
from warpbook.server.web.parameters import Parameters


class _ProbeHandler(Parameters, APIHandler):
    _track_activity = False

    def initialize(self, readiness: Readiness) -> None:
        self._readiness = readiness

    async def prepare(self) -> None:  # type: ignore[override]
        """Find out about nobody: a probe is nobody's."""


class HealthHandler(_ProbeHandler):
    """`GET api/v1/health`: 200 as long as the event loop answers.

    Cost: nothing is read.
    """

    @allow_unauthenticated
    def get(self) -> None:
        self.finish({"healthy": True})


class ReadyHandler(_ProbeHandler):
    """`GET api/v1/ready`: 200, or 503 with the reason.

    A full disk stops no server: a person must get in to make room. It is a problem.

    Cost: that of a lookup of the user, where something is a problem.
    """

    @allow_unauthenticated
    async def get(self) -> None:
        reason, problems = self._readiness.reason, self._readiness.problems()
        if problems and not await self._may_know():
            problems = dict.fromkeys(problems, "stopped")
        self.set_status(503 if reason else 200)
        self.finish({"ready": not reason, "reason": reason, "problems": problems})

    async def _may_know(self) -> bool:
        """Whether somebody asks who may read what the server tells."""
        try:
            user = await ensure_async(self.identity_provider.get_user(self))
            if user is None:
                return False
            self.current_user = user
            refuse_cross_site(self, may_be_opened=False)
        except web.HTTPError:
            # a probe is answered also where a hub does not tell who asks
            return False
        allowed = self.authorizer.is_authorized(self, user, "read", "warpbook")
        return bool(await ensure_async(allowed))
