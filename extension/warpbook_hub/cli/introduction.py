"""What `warpbook hub` says of a class as it starts it."""

from __future__ import annotations

import os
import pwd
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from warpbook.cli.doctor.neighbours import neighbour_check
from warpbook_hub.cli.cluster import head_warning
from warpbook_monitors.plain_text import printable

if TYPE_CHECKING:
    from warpbook_hub.running.plan import HubPlan

_DEMO = """\
  A DEMO, NOT ISOLATED: all learners, the course's database and the grader share the
  account `{account}`. Any learner can read and change everything, marks included.
  For a class start it as root with --users system."""
_ISOLATED = """\
  Each learner has an account of this machine, the course's database belongs to
  `{service}`, and grading is done as `{grader}`. `warpbook doctor` proves it."""

_ONE_HOST = """\
  ONE HOST FOR ALL: a page in a learner's server can act as whoever opens it, staff
  included. Give each server a host of its own with --subdomain-host."""

_PLATFORM = """\
  People log in from {issuer}. Tell it, where the tool is registered:
    log-in initiation {url}hub/lti13/oauth_login
    redirection       {url}hub/lti13/oauth_callback"""

_NO_SCRIPT = """\
  THE PAGES' SCRIPT IS MISSING: their buttons, forms and live updates do nothing. In a
  clone run `make setup-hub`; else install warpbook anew."""


_PLATFORM_BY_HTTP = """\
  BY HTTP BROWSERS SEND NO COOKIES BACK FROM THE PLATFORM, and nobody logs in: give
  --ssl-cert and --ssl-key, or let people reach the hub by a proxy with HTTPS."""

#: of a module that labs need: what is not graded without it
_NEEDS = {"torch": "labs in PyTorch", "triton": "labs in Triton"}


def introduce(plan: HubPlan) -> None:
    """Say what grades, and how far it is isolated."""
    say(f"warpbook hub, course `{plan.course}`, in {plan.folder}")
    if plan.ray_address:
        say(f"  Graded on the Ray cluster of {plan.ray_address}{head_warning(plan)}")
    elif plan.use_gpu and plan.cpu_slots:
        from warpbook_hub.grader.gpus import devices

        if not devices():
            say("  No GPU here: correctness is graded, speed is not")
        elif not plan.notebooks_use_gpu:
            say("  GPUs grade, and notebooks don't see them (--notebooks-use-gpu)")
    if plan.cpu_slots and not plan.ray_address:
        for module, labs in _NEEDS.items():
            if find_spec(module) is None:
                install = f"{sys.executable} -m pip install 'warpbook-labs[{module}]'"
                say(f"  Not graded here: {labs}. To grade them: {install}")
    for check in neighbour_check():
        say(f"  NEIGHBOURS. {check.message} {check.remedy}")
    from warpbook_hub.service.script import has_script

    if not has_script():
        say(_NO_SCRIPT)
    if plan.platform is not None:
        say(_PLATFORM.format(issuer=plan.platform.issuer, url=plan.url))
        say(f"    public keys       {plan.pages_url}lti/jwks.json")
        if not plan.ssl_cert:
            say(_PLATFORM_BY_HTTP)
    if plan.users == "system":
        say(_ISOLATED.format(service=plan.service_user, grader=plan.grader_user))
        if not plan.subdomain_host:
            say(_ONE_HOST)
        return
    say(_DEMO.format(account=pwd.getpwuid(os.getuid()).pw_name))
    if plan.platform is not None:
        return
    from warpbook_hub.running import login

    passwords = login.passwords_of(plan.hub_folder)
    say(f"  Password of learners: {passwords.learners}")
    say(f"  Password of instructors: {passwords.staff}")


def say(words: str) -> None:
    """Print lines at once."""
    for line in words.split("\n"):
        print(printable(line), flush=True)
