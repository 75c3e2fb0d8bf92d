"""Tells every page how the archive stands."""

from __future__ import annotations

from collections.abc import Callable

from warpbook.protocol import Keeping
from warpbook.server.broadcast import Broadcaster
from warpbook.server.selection import encode
from warpbook_monitors.archive.archive import Archive

_OFF = Keeping("off", None, 0, "WarpbookApp.archive is off: nothing is kept on disk.")


def keep_telling(
    broadcaster: Broadcaster,
    archive: Archive | None,
    on_loop: Callable[[Callable[[bytes], None], bytes], None],
) -> None:
    """Have each new page told how the archive stands, and all when that changes.

    Args:
        broadcaster: reaches the pages.
        archive: None where nothing is kept.
        on_loop: calls a function with its argument on the event loop, from any thread.
    """
    if archive is None:
        broadcaster.greet(lambda: [encode(_OFF)])
        return
    broadcaster.greet(lambda: [encode(archive.keeping)])
    archive.listen(lambda keeping: on_loop(broadcaster.send_everyone, encode(keeping)))
