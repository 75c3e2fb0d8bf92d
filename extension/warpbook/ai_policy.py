"""What AI assistants may do with a lab here, as the courses of the hub say."""

from __future__ import annotations

import os
import time
from typing import Literal, get_args

from msgspec import Struct

from warpbook.class_hub import OWN_TOKEN, URL, ClassHub, hub_here
from warpbook.hub_client import HubProblem
from warpbook.hub_protocol import AiPolicy
from warpbook_monitors.plain_text import bounded

#: what a tool does with a lab: it shows what a cell or a check of it was, checks a
#: source, teaches (explains, hints, solves), or hands in
LabUse = Literal["see", "check", "teach", "submit"]
#: what each policy allows
_USES: dict[AiPolicy, tuple[LabUse, ...]] = {
    "off": (),
    "checking": ("see", "check"),
    "on": get_args(LabUse),
}
_WORDS: dict[LabUse, str] = {
    "see": "Reports of its cells are",
    "check": "Checking it is",
    "teach": "Hints, explanations and solutions of it are",
    "submit": "Handing it in is",
}
#: an instructor's change holds here after so long
_ASK_AGAIN_S = 60.0
#: the same, where the hub did not answer
_TRY_AGAIN_S = 5.0


class LabPolicy(Struct, frozen=True):
    """What holds for a lab."""

    policy: AiPolicy
    #: the course that says so; empty: no course of the person's has the lab
    course: str = ""
    #: why it is not known; it is off then
    problem: str = ""

    def refusal(self, use: LabUse) -> str:
        """Say why a tool may not do this with the lab; empty: it may."""
        if use in _USES[self.policy]:
            return ""
        if self.problem:
            return (
                "Whether your course allows AI assistants in this lab is not known, so "
                f"it is taken as off. {self.problem}"
            )
        return (
            f"{_WORDS[use]} not for AI assistants: the course {self.course} has them "
            f"{'off' if self.policy == 'off' else 'for checking only'} in this lab. "
            "Do it yourself, or ask your instructor."
        )


def own_hub() -> ClassHub | None:
    """Give the hub that started this server, or that the environment names.

    Raises:
        HubProblem: what the environment names is no address.
    """
    url, token = os.environ.get(URL), os.environ.get(OWN_TOKEN)
    return hub_here() or (ClassHub(url, token) if url and token else None)


class AiPolicies:
    """Asks the hub, and keeps its answer for a minute; of one thread."""

    def __init__(self) -> None:
        """Ask nothing yet."""
        self._until_s = 0.0
        self._by_lab: dict[str, LabPolicy] = {}
        self._otherwise = LabPolicy("on")

    def of(self, lab: str) -> LabPolicy:
        """Give what holds for a lab; it may ask the hub, which takes seconds.

        Args:
            lab: its name in the catalogue.
        """
        if time.monotonic() >= self._until_s:
            self._ask()
            wait_s = _TRY_AGAIN_S if self._otherwise.problem else _ASK_AGAIN_S
            self._until_s = time.monotonic() + wait_s
        return self._by_lab.get(lab, self._otherwise)

    def _ask(self) -> None:
        self._by_lab = {}
        try:
            hub = own_hub()
            policies = [] if hub is None else hub.ai_policies()
        except HubProblem as problem:
            self._otherwise = LabPolicy("off", problem=bounded(str(problem), 300))
            return
        self._otherwise = LabPolicy("on")
        for one in policies:
            before = self._by_lab.get(one.lab)
            # of several courses the strictest
            uses = len(_USES[one.ai_policy])
            if before is None or uses < len(_USES[before.policy]):
                self._by_lab[one.lab] = LabPolicy(one.ai_policy, bounded(one.course))
