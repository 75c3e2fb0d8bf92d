"""A GPU of the class hub for a while: what `%gpulease` and `warpbook gpulease` do."""

from __future__ import annotations

import argparse
import time

from warpbook.class_hub import ClassHub, hub_here
from warpbook.hub_client import HubProblem
from warpbook.hub_protocol import LeaseFor, LeaseLonger, OwnLease
from warpbook_monitors import units

ACTIONS = ("status", "take", "extend", "return")
_POLL_S = 1.0
#: a free GPU comes with the keeper's next report
_FREE_S = 10.0


def add_options(described: argparse.ArgumentParser) -> None:
    described.add_argument("action", nargs="?", choices=ACTIONS, default="status")
    described.add_argument(
        "--minutes", type=int, default=20, help="10 to 30 (default: 20)"
    )
    described.add_argument("--gpu", default="", metavar="NAME", help="default: any")
    described.add_argument(
        "--course", default="", metavar="ID", help="if you are of several"
    )
    described.add_argument(
        "--wait", action="store_true", help="until it is there, however long"
    )


def do(options: argparse.Namespace) -> OwnLease:
    """Do what was asked for.

    Raises:
        HubProblem: no hub started this server, or it does not do it.
    """
    hub = hub_here()
    if hub is None:
        raise HubProblem("GPUs are leased on a class hub: this server is of none.")
    course = _course(hub, options.course)
    if options.action == "take":
        lease = hub.lease(course, "take", LeaseFor(options.minutes, options.gpu))
        end_s = time.monotonic() + _FREE_S
        while lease.state == "waiting" and (options.wait or time.monotonic() < end_s):
            time.sleep(_POLL_S)
            lease = hub.lease(course)
        return lease
    if options.action == "extend":
        return hub.lease(course, "extend", LeaseLonger(options.minutes))
    return hub.lease(course, "return" if options.action == "return" else "")


def words(lease: OwnLease) -> str:
    note = f" {lease.note}" if lease.note else ""
    if lease.state == "held":
        minutes = (lease.left_s + 59) // 60
        return f"{lease.name} is yours for {minutes} more minutes.{note}"
    if lease.state == "ending":
        return f"{lease.name} is taken back.{note}"
    if lease.state == "waiting":
        what = lease.name or "any GPU"
        when = (
            f"about {units.duration_about(lease.eta_s)}, or less"
            if lease.eta_s is not None
            else "nobody can say how long"
        )
        return f"You are number {lease.place} in the line for {what}: {when}."
    return f"You have no GPU.{note}"


def _course(hub: ClassHub, named: str) -> str:
    if named:
        return named
    courses = [course.id for course in hub.courses()]
    if len(courses) != 1:
        names = ", ".join(courses) or "none"
        raise HubProblem(f"Name your course with --course. Yours: {names}.")
    return courses[0]
