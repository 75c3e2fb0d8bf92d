"""`python -m warpbook_hub.keeper URL DEVICE...`: keeps GPUs until it is stopped.

Root runs it, where the GPUs are. Its token comes on stdin. When it is stopped, or who
started it has gone, all access is taken back.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pwd
import signal
import socket
import sys
import time

from warpbook.hub_client import HubAway, HubClient, HubRefused
from warpbook.hub_protocol import KEEPER, Orders
from warpbook_hub.keeper.loop import Keeper
from warpbook_monitors.plain_text import printable

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_POLL_S = 1.0
#: for an answer
_WAIT_S = 5.0
_MOST_TOKEN_BYTES = 1_000


def main() -> int:
    options = _arguments()
    parent = os.getppid()
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    libc.prctl(_PR_SET_DUMPABLE, 0)
    token = sys.stdin.read(_MOST_TOKEN_BYTES).strip()
    # no event: its lock may be held where the signal comes
    stopped: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: stopped.append(number))
    spared = frozenset(pwd.getpwnam(name).pw_uid for name in options.spare)
    keeper = Keeper(
        socket.gethostname(), options.devices, options.idle_end_s, spared, _say
    )
    client = HubClient(options.url, token, KEEPER, _WAIT_S)
    _say(f"{len(options.devices)} devices, for {options.url}")
    last = ""
    try:
        while not stopped and os.getppid() == parent:
            begun_s = time.monotonic()
            try:
                keeper.apply(client.ask("report", Orders, keeper.look()), begun_s)
                last = ""
            except HubAway as problem:
                # what was granted goes on to its end, and no further
                if str(problem) != last:
                    last = str(problem)
                    _say(last)
            keeper.enforce()
            time.sleep(_POLL_S)
    except HubRefused as problem:
        _say(f"The hub refuses this keeper: {problem}")
        return 1
    finally:
        keeper.revoke_all()
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m warpbook_hub.keeper")
    parser.add_argument("url", help="of the course service")
    parser.add_argument("devices", nargs="+", metavar="DEVICE", help="nodes it keeps")
    parser.add_argument(
        "--idle-end-s", type=float, default=600.0, help="0: leases may idle"
    )
    parser.add_argument(
        "--spare", action="append", default=[], metavar="NAME", help="an account"
    )
    return parser.parse_args()


def _say(words: str) -> None:
    sys.stderr.write(f"warpbook keeper: {printable(words)}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
