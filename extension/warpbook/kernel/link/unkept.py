"""What the server shows and could not keep: handed in again until it is on disk."""

from __future__ import annotations

import threading
import time
from collections import deque

from warpbook.kernel.link.server_link import LinkError, NotKept

#: reports, receipts and events; beyond it the oldest are given up
MOST_HELD_BYTES = 64_000_000
_FIRST_S, _LONGEST_S = 5.0, 300.0


class Unkept:
    """One thread for this kernel, while there is something; it ends with the kernel."""

    def __init__(self) -> None:
        self._held: deque[NotKept] = deque()
        self._lock = threading.Lock()
        self._is_working = False

    def hold(self, problem: NotKept) -> str:
        """Hand it in again until it is kept; give the words for the person."""
        with self._lock:
            self._held.append(problem)
            while sum(held.size_bytes for held in self._held) > MOST_HELD_BYTES:
                self._held.popleft()
            if not self._is_working:
                self._is_working = True
                threading.Thread(
                    target=self._work, name="warpbook-unkept", daemon=True
                ).start()
        return (
            f"{problem} While it runs, this kernel hands it in again until it is kept "
            f"(of such the newest {MOST_HELD_BYTES // 10**6} MB)."
        )

    def _work(self) -> None:
        pause_s = _FIRST_S
        while True:
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_S)
            while True:
                with self._lock:
                    if not self._held:
                        self._is_working = False
                        return
                    oldest = self._held[0]
                try:
                    # kept, or refused for good
                    oldest.again()
                except LinkError:
                    break
                with self._lock:
                    if self._held and self._held[0] is oldest:
                        self._held.popleft()
                pause_s = _FIRST_S


#: of this kernel
unkept = Unkept()
