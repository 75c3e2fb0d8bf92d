"""What the doctor looks at of a class's hub: whether learners are kept apart.

It is not believed but tried: as each account that may log in, or, in a learner's own
terminal, as theirs.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from warpbook.cli.doctor.check import Check, shown
from warpbook_hub.cli.cluster import cluster_check
from warpbook_labs.lab.files import CATALOGUE, SHOWN

if TYPE_CHECKING:
    from warpbook_hub.running.plan import HubPlan

#: set by the hub for the servers that it starts
FOLDER = "WARPBOOK_HUB_FOLDER"
_TRIAL_S = 120
#: beside a course's file, where its database is a server's
ADDRESS = "database.url"


def hub_checks() -> Iterator[Check]:
    """Look at the hub of this person, or at the one that started this server."""
    from warpbook_hub.running import plan as plans

    folder = Path(os.environ.get(FOLDER) or plans.default_folder())
    file = folder / plans.FILE
    try:
        plan: HubPlan = plans.read_plan(file)
    except FileNotFoundError:
        yield Check("Hub", "absent", "No class's hub was started here.")
        return
    except PermissionError:
        # then its plan is nobody else's, either
        yield Check("Hub", "absent", f"{shown(str(file))} is somebody else's.")
        return
    except (OSError, msgspec.MsgspecError) as problem:
        remedy = "Start the hub once more: it is written anew then."
        yield Check("Hub", "broken", f"{shown(str(file))}: {problem}.", remedy)
        return
    where = f"Course `{plan.course}` at {plan.url}, kept in {shown(plan.folder)}."
    yield Check("Hub", "ok", where)
    yield database_check(plan)
    if plan.ray_address:
        yield cluster_check(plan)
    yield _isolation(plan, file)
    yield _solutions(plan)


def _isolation(plan: HubPlan, file: Path) -> Check:
    what = "Hub isolation"
    if plan.users == "shared":
        return Check(
            what,
            "absent",
            "A demo, not isolated: all learners have the account that the hub has, and "
            "can read and change everything, marks included.",
            "For a class: warpbook hub --users system, as root.",
        )
    if importlib.util.find_spec("psutil") is None:
        return Check(what, "broken", "It can't be tried without psutil.")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "warpbook_hub.running.isolation", str(file)],
            capture_output=True,
            timeout=_TRIAL_S,
        )
        from warpbook_hub.running import isolation

        trial = msgspec.json.decode(done.stdout, type=isolation.Trial)
    except (subprocess.TimeoutExpired, OSError, msgspec.MsgspecError) as problem:
        return Check(what, "broken", f"It could not be tried: {problem}.")
    if trial.leaks:
        more = len(trial.leaks) - 1
        words = f"{trial.leaks[0]}{f', and {more} more' if more else ''}."
        return Check(
            what,
            "broken",
            f"Not isolated: {words}",
            "Take these rights away (chmod 700), and ask the doctor again.",
        )
    if not plan.subdomain_host:
        return Check(
            what,
            "broken",
            "Accounts are apart, and all pages have one host: a page in a learner's "
            "server can act as whoever opens it, staff included.",
            "Start the hub with --subdomain-host.",
        )
    names = len(trial.accounts)
    own = pwd.getpwuid(os.getuid()).pw_name
    who = f"As {own}" if names == 1 else f"As each of {names} accounts"
    if not trial.accounts:
        who = "There is no learner's account yet. As nobody"
    return Check(
        what,
        "ok",
        f"Isolated. {who} it was tried to open the hub's and the course's databases "
        "and secrets, other learners' folders, and the memory, environment and "
        f"signals of {trial.processes} processes of the hub: nothing could be.",
    )


def database_check(plan: HubPlan) -> Check:
    """Say where the course's database is, without a password."""
    what = "Hub database"
    from warpbook_hub import errors
    from warpbook_hub.database import address as addresses

    try:
        address = addresses.read_address(plan.course_folder)
    except errors.DatabaseUnfit as problem:
        if isinstance(problem.__cause__ or problem.__context__, PermissionError):
            return Check(what, "absent", "Only who runs the hub can look at it.")
        return Check(what, "broken", f"{problem}", "Move it anew: --move-database.")
    if address is None:
        return Check(what, "ok", "A file of SQLite in the course's folder.")
    return Check(what, "ok", f"PostgreSQL: {addresses.without_password(address)}.")


def _solutions(plan: HubPlan) -> Check:
    whole = [
        file.parent
        for file in CATALOGUE.glob("*/*/lab.toml")
        if not (file.parent / SHOWN).is_file()
    ]
    if not whole:
        return Check("Hub solutions", "ok", "The labs here have no solutions in them.")
    return Check(
        "Hub solutions",
        "absent",
        f"{len(whole)} labs are installed with references and the generators of hidden "
        "cases, which learners can read. Hidden cases are still drawn anew for each "
        "submission.",
        "For marks that count: `warpbook labs part`, and a vault for the grader.",
    )
