"""What a task in the background does in rounds: one that fails is tried again."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Coroutine

from warpbook_hub.errors import HubError

_LOG = logging.getLogger("warpbook_hub")


async def tried(what: str, work: Coroutine[object, object, None]) -> bool:
    """Do a part of a round; whether it was done. The next round may do better."""
    try:
        await work
    except HubError as problem:
        _LOG.warning("%s: %s", what, problem)
    except Exception as problem:  # noqa: BLE001
        # a message of the database has names and ids of people in it
        where = "".join(traceback.format_tb(problem.__traceback__))
        _LOG.error("%s failed with %s\n%s", what, type(problem).__name__, where)
    else:
        return True
    return False
