"""What JupyterHub's home page says of a person's notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from warpbook_hub.running.plan import HubPlan
from warpbook_hub.service.notice_rounds import UNREAD

_decode = msgspec.json.Decoder(dict[str, int]).decode


def unread_words(plan: HubPlan) -> Callable[[Any], str]:
    """Return what gives JupyterHub its announcement for a user, as HTML."""
    file = plan.course_folder / UNREAD

    def words(user: Any) -> str:
        try:
            count = _decode(file.read_bytes()).get(getattr(user, "name", ""), 0)
        except (OSError, msgspec.MsgspecError):
            # the service has not begun yet
            return ""
        if not count:
            return ""
        notices = "1 notice" if count == 1 else f"{count} notices"
        return f'<a href="{plan.pages_url}notices">{notices} of your courses</a>'

    return words
