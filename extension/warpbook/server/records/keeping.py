"""Tells every page how the archive stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from warpbook.protocol import Keeping
from warpbook.server.stream.broadcast import Broadcaster
from warpbook.server.stream.selection import encode
from warpbook.server.stream.stream_part import StreamPart
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
    broadcaster.attach(_KeepingGreeting(archive))
    if archive is not None:
        send = broadcaster.viewers.send_everyone
        archive.listen(lambda keeping: on_loop(send, encode(keeping)))


class _KeepingGreeting(StreamPart):
    """Tells each new page how the archive stands."""

    def __init__(self, archive: Archive | None) -> None:
        self._archive = archive

    def greeting(self) -> Iterable[bytes]:
        """Give how it stands now."""
        return [encode(_OFF if self._archive is None else self._archive.keeping)]
