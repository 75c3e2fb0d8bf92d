"""Hints of kernels: what the hub takes, and what people's servers say."""

from __future__ import annotations

from msgspec import Struct

from warpbook.hub.nodes import kernel_hints
from warpbook.hub.nodes.kernel_hints import HintsNow
from warpbook.hub.service.admitted import Admitted
from warpbook.hub.service.parameters import HintsTaken, Nothing
from warpbook.hub.service.service import Service
from warpbook.kernel_hints_protocol import HintPolicy, KernelHints, Policy


class Heard(Struct, frozen=True):
    """A message of somebody's server, and what may be kept of it."""

    username: str
    now_ms: int
    policy: Policy
    message: KernelHints


def policy_for(admitted: Admitted, _: Nothing) -> HintPolicy:
    """Tell somebody's server which hints the hub takes of them."""
    username = admitted.username
    return HintPolicy(kernel_hints.policy_for(admitted.connection, username))


def hear(admitted: Admitted, given: KernelHints) -> Heard:
    """Take a message as the word of who sent it, and of nobody else."""
    taken = policy_for(admitted, Nothing()).policy
    return Heard(admitted.username, admitted.now_ms, taken, given)


async def keep(service: Service, heard: Heard) -> HintPolicy:
    """Keep it in memory, where hints are taken."""
    if heard.policy != "off":
        service.kernel_hints.note(heard.username, heard.now_ms, heard.message)
    return HintPolicy(heard.policy)


async def now(service: Service, _: Nothing) -> HintsNow:
    """Give a route what was said."""
    return service.kernel_hints.now


def set_policy(admitted: Admitted, given: HintsTaken) -> HintPolicy:
    """Set which hints the hub takes."""
    kernel_hints.set_policy(
        admitted.connection, admitted.now_ms, admitted.actor, given.take
    )
    return HintPolicy(given.take)


async def forget(service: Service, taken: HintPolicy) -> HintPolicy:
    """Drop what was said under another policy."""
    service.kernel_hints.forget()
    return taken
