"""`python -m warpbook_hub.service`: the course service, started by the hub or by hand.

JupyterHub gives it address, prefix and token in the environment, as to any service. It
ends with the process that started it, so that the next one finds its port free.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from warpbook.guarded_server import GuardedServer
from warpbook_hub.errors import HubError
from warpbook_hub.lti.platform import PLATFORM, LtiPlatform
from warpbook_hub.notices.smtp import MAIL, MailServer
from warpbook_hub.service.application import application
from warpbook_hub.service.heartbeat import PAGES
from warpbook_hub.service.login import hub_login
from warpbook_hub.service.notice_rounds import NoticeRounds
from warpbook_hub.service.service import Service
from warpbook_monitors.budget import raise_descriptors

if TYPE_CHECKING:
    from warpbook_hub.service.score_sender import PlatformLink

#: names the folder with the database
DATA = "WARPBOOK_HUB_DATA"
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_BEFORE_CLOSING_S = 3.0


def main() -> int:
    """Serve until a signal, or the end of who started it."""
    logging.basicConfig(format="warpbook hub: %(levelname)s %(message)s")
    missing = [
        name
        for name in (DATA, "JUPYTERHUB_SERVICE_URL", "JUPYTERHUB_API_TOKEN")
        if not os.environ.get(name)
    ]
    if missing:
        _say(f"{', '.join(missing)}: not set. `warpbook hub` starts the service.")
        return 2
    if not _ends_with_parent():
        return 1
    try:
        asyncio.run(_serve(Path(os.environ[DATA])))
    except (HubError, OSError) as problem:
        _say(str(problem))
        return 1
    return 0


async def _serve(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    service = Service(folder)
    link = _platform_link(folder)
    prefix = os.environ.get("JUPYTERHUB_SERVICE_PREFIX", "/services/warpbook/")
    # on another host where each server has its own
    host = os.environ.get("JUPYTERHUB_HOST", "")
    hub_prefix = f"{host}{os.environ.get('JUPYTERHUB_BASE_URL', '/')}hub/"
    hub_login()
    raise_descriptors()
    server = GuardedServer(
        application(service, prefix, hub_prefix, link), xheaders=True
    )
    at = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    tasks = [
        asyncio.ensure_future(service.live.run(service)),
        asyncio.ensure_future(service.heartbeat.run(service, prefix)),
    ]
    notices = NoticeRounds(_mail_server(), os.environ.get(PAGES, prefix))
    tasks.append(asyncio.ensure_future(notices.run(service)))
    if link is not None:
        tasks.append(asyncio.ensure_future(link.sender.run(service)))
    try:
        server.listen(at.port or 80, at.hostname or "127.0.0.1")
        _say(f"serves {prefix} at {at.netloc}")
        await ended.wait()
        server.stop()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(server.close_all_connections(), _BEFORE_CLOSING_S)
    finally:
        for task in tasks:
            task.cancel()
        service.close()


def _platform_link(folder: Path) -> PlatformLink | None:
    """Give the link to the platform that the hub belongs to, if to any."""
    text = os.environ.get(PLATFORM)
    if not text:
        return None
    # what it takes is an extra
    from warpbook_hub.service.score_sender import PlatformLink

    return PlatformLink(msgspec.json.decode(text, type=LtiPlatform), folder)


def _mail_server() -> MailServer | None:
    text = os.environ.get(MAIL)
    return msgspec.json.decode(text, type=MailServer) if text else None


def _ends_with_parent() -> bool:
    """Be asked to end when the parent is gone, however that ended."""
    parent = os.getppid()
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    # nobody else of this user reads our memory, or our environment
    libc.prctl(_PR_SET_DUMPABLE, 0)
    # it may have gone before
    return os.getppid() == parent


def _say(words: str) -> None:
    sys.stderr.write(f"warpbook hub: {words}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
