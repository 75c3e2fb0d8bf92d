"""`warpbook hub`: a class on this machine, from nothing, in one command."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import pwd
import re
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from warpbook.cli.output import CommandError
from warpbook_hub.cli import config as hub_config
from warpbook_hub.cli import nbgrader, roster
from warpbook_hub.cli.accounts import ACCOUNTS, service_accounts
from warpbook_hub.cli.cluster import add_options, cluster_of
from warpbook_hub.cli.introduction import introduce, say
from warpbook_monitors.cores import usable_cores

if TYPE_CHECKING:
    from warpbook_hub.lti.platform import LtiPlatform
    from warpbook_hub.running.plan import HubPlan


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "hub",
        help="start a class on this machine: JupyterHub, a course, and graders",
        description="Start JupyterHub with the course service and graders on this "
        "machine, and keep them running. What was there before is there again.",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="where everything is kept (default: your data folder)",
    )
    parser.add_argument(
        "--course", default="gpu", metavar="ID", help="of the course (default: gpu)"
    )
    parser.add_argument(
        "--title", default="GPU programming", help="of the course, when it is begun"
    )
    parser.add_argument(
        "--instructor",
        action="append",
        default=[],
        metavar="NAME",
        help="a user name that is added to those who run the course, if it does not "
        "know them; more than once for more (default: your own, of a new course of a "
        "demo)",
    )
    parser.add_argument(
        "--operator",
        action="append",
        default=[],
        metavar="NAME",
        help="a user name that runs what concerns all courses: graders, the whole "
        "queue, backups; more than once for more (default: your own). With --lti it "
        "takes the person's id at the platform, too: NAME=ID",
    )
    parser.add_argument(
        "--users",
        choices=("shared", "system"),
        default="shared",
        help="shared: a demo, all learners have your account; system: each learner "
        "has an account of this machine, which takes root (default: shared)",
    )
    parser.add_argument("--ip", default="127.0.0.1", help="to listen on")
    parser.add_argument(
        "--port",
        type=int,
        default=8000,
        help="to listen on; the three after it are used inside (default: 8000)",
    )
    parser.add_argument("--base-url", default="/", metavar="PATH", help="such as /gpu/")
    parser.add_argument(
        "--subdomain-host",
        default="",
        metavar="URL",
        help="such as https://hub.example.org, with *.hub.example.org to this machine, "
        "too: each learner's server then has a host of its own, and its pages reach "
        "nothing of the course's",
    )
    parser.add_argument("--ssl-cert", type=Path, metavar="FILE", help="for HTTPS")
    parser.add_argument("--ssl-key", type=Path, metavar="FILE", help="for HTTPS")
    parser.add_argument(
        "--cpu-slots",
        type=int,
        metavar="N",
        help="submissions graded on the CPU at a time; 0: graders of other machines do "
        "all (default: half of the cores)",
    )
    parser.add_argument(
        "--no-gpu", action="store_true", help="grade correctness only; leave GPUs alone"
    )
    add_options(parser)
    parser.add_argument(
        "--notebooks-use-gpu",
        action="store_true",
        help="let notebooks see the GPUs that grade; timed runs wait while they work",
    )
    parser.add_argument(
        "--move-database",
        metavar="ADDRESS",
        help="move the course to a PostgreSQL database, such as "
        "postgresql://warpbook@db.example.org/warpbook, or back to a file (`sqlite`), "
        "and end; `env`: the address is in WARPBOOK_HUB_DATABASE",
    )
    parser.add_argument(
        "--lease-gpu",
        action="append",
        default=[],
        metavar="DEVICE",
        help="a GPU's node, such as /dev/nvidia0, that people lease for their "
        "notebooks; more than once for more; needs --users system",
    )
    parser.add_argument(
        "--lease-idle-min",
        type=int,
        default=10,
        metavar="N",
        help="end a lease after so many minutes without work on the GPU; it warns at "
        "half of that; 0: leases may idle (default: 10)",
    )
    parser.add_argument(
        "--lti",
        type=Path,
        metavar="FILE",
        help="people log in from a learning platform by LTI 1.3; the file says which",
    )
    parser.add_argument(
        "--mail",
        type=Path,
        metavar="FILE",
        help="mail notices of results, appeals and parked jobs, too; the file names "
        "the mail server",
    )
    parser.add_argument(
        "--restore", type=Path, metavar="FILE", help="put a backup in place first"
    )
    own = parser.add_subparsers(metavar="command", title="for a hub that is there")
    hub_config.add_command(own)
    roster.add_command(own)
    nbgrader.add_command(own)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Start the hub, and stay until it is asked to end."""
    from warpbook_hub.running import holding

    plan = _plan(options)
    with contextlib.ExitStack() as stack:
        try:
            plan.place.mkdir(parents=True, exist_ok=True)
            # a second one would take plan and grader from the one that runs
            stack.enter_context(holding.held(plan.place))
        except holding.IsHeld:
            raise CommandError(
                f"A hub runs in {plan.folder} already. End it first, or name another "
                "folder with --folder."
            ) from None
        except OSError as problem:
            raise CommandError(f"{problem.filename}: {problem.strerror}.") from None
        if options.move_database:
            from warpbook_hub.cli import database

            _make_folders(plan)
            say(database.move(plan, options.move_database))
        else:
            _run_held(plan, options.restore)
    return 0


def _run_held(plan: HubPlan, restore: Path | None) -> None:
    from warpbook_hub.running import plan as plans
    from warpbook_hub.running import supervisor

    _check_ports(plan)
    _make_folders(plan)
    file = plans.write_plan(plan)
    introduce(plan)
    try:
        supervisor.Supervisor(plan, file, say).run(restore)
    except supervisor.CantRun as problem:
        say(str(problem))
        raise CommandError(
            f"The hub was not started; see above, and {plan.hub_folder}/hub.log."
        ) from None
    say("warpbook hub stopped.")


def _plan(options: argparse.Namespace) -> HubPlan:
    from warpbook_hub.running import plan as plans
    from warpbook_hub.running import proxy as proxies

    folder = (options.folder or plans.default_folder()).absolute()
    lease_gpus = _lease_gpus(options)
    if re.fullmatch(r"/|/[A-Za-z0-9._~/-]*/", options.base_url) is None:
        raise CommandError("--base-url begins and ends with a slash, such as /gpu/.")
    if options.subdomain_host and not _is_host(options.subdomain_host):
        raise CommandError("--subdomain-host is such as https://hub.example.org.")
    if (options.ssl_cert is None) != (options.ssl_key is None):
        raise CommandError("HTTPS needs both --ssl-cert and --ssl-key.")
    accounts = dict.fromkeys(ACCOUNTS, "")
    if options.users == "system":
        accounts = service_accounts()
    cluster = cluster_of(options, accounts["grader_user"])
    try:
        proxy = proxies.proxy_command(folder / "proxy", say)
    except proxies.NoProxy as problem:
        raise CommandError(str(problem)) from None
    plan: HubPlan = plans.HubPlan(
        str(folder),
        options.users,
        options.ip,
        options.port,
        options.base_url,
        options.course,
        options.title,
        tuple(options.instructor),
        proxy,
        tuple(options.operator) or (_own_name(),),
        cpu_slots=_cpu_slots(options.cpu_slots),
        use_gpu=not options.no_gpu,
        ssl_key=str(options.ssl_key.absolute()) if options.ssl_key else "",
        ssl_cert=str(options.ssl_cert.absolute()) if options.ssl_cert else "",
        vault=os.environ.get("WARPBOOK_LABS_VAULT", ""),
        subdomain_host=options.subdomain_host.rstrip("/"),
        notebooks_use_gpu=options.notebooks_use_gpu,
        lease_gpus=lease_gpus,
        lease_idle_min=options.lease_idle_min,
        **cluster,
        platform=None if options.lti is None else _platform(options.lti),
        mail_file="" if options.mail is None else _mail_file(options.mail),
        **accounts,
    )
    return plan


def _lease_gpus(options: argparse.Namespace) -> tuple[str, ...]:
    """Give the nodes of the GPUs that are leased.

    Raises:
        CommandError: they can't be leased by this hub.
    """
    paths = tuple(dict.fromkeys(os.path.realpath(path) for path in options.lease_gpu))
    if paths and options.users != "system":
        raise CommandError(
            "--lease-gpu gives a GPU to one account, and all learners of a demo have "
            "the same. Start the hub with --users system."
        )
    if paths and options.notebooks_use_gpu:
        raise CommandError("--lease-gpu and --notebooks-use-gpu exclude each other.")
    for path in paths:
        if not os.path.exists(path):
            raise CommandError(f"{path}: there is no such device.")
    if not 0 <= options.lease_idle_min <= 24 * 60:
        raise CommandError("--lease-idle-min is 0 to 1440.")
    return paths


def _platform(file: Path) -> LtiPlatform:
    """Read whom people log in from, and see that what it takes is here.

    Raises:
        CommandError: it can't be used.
    """
    missing = [
        name
        for name in ("ltiauthenticator", "jwt")
        if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise CommandError(
            f"--lti needs {', '.join(missing)}, which this Python has not. "
            f"Run: {sys.executable} -m pip install 'warpbook-hub[lti]'"
        )
    from warpbook_hub.lti import platform as platforms

    try:
        platform: LtiPlatform = platforms.read_platform(file)
    except platforms.BadPlatform as problem:
        raise CommandError(str(problem)) from None
    return platform


def _mail_file(file: Path) -> str:
    """See that a mail server's file can be used; return where it is.

    Raises:
        CommandError: it can't.
    """
    from warpbook_hub.notices import smtp

    try:
        smtp.read_mail_server(file)
    except smtp.BadMailServer as problem:
        raise CommandError(str(problem)) from None
    return str(file.absolute())


def _is_host(url: str) -> bool:
    return re.fullmatch(r"https?://[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?/?", url) is not None


def _cpu_slots(wanted: int | None) -> int:
    if wanted is not None and wanted < 0:
        raise CommandError("--cpu-slots is 0 or more.")
    return max(1, usable_cores() // 2) if wanted is None else wanted


def _own_name() -> str:
    name = pwd.getpwuid(os.getuid()).pw_name.lower()
    return name if re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name) else "instructor"


def _check_ports(plan: HubPlan) -> None:
    ports = (plan.port, plan.hub_port, plan.proxy_port, plan.service_port)
    for port in ports:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
            except (OSError, OverflowError):
                raise CommandError(
                    f"Port {port} is in use. Name another with --port; it and the "
                    "three after it are needed."
                ) from None


def _make_folders(plan: HubPlan) -> None:
    """Make the folders, so that only those get in whose they are."""
    try:
        # others pass through to what is theirs
        is_system = plan.users == "system"
        plan.place.mkdir(parents=True, exist_ok=True)
        plan.place.chmod(0o711 if is_system else 0o700)
        for folder in (plan.hub_folder, plan.course_folder):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o700)
        if is_system:
            account = pwd.getpwnam(plan.service_user)
            os.chown(plan.course_folder, account.pw_uid, account.pw_gid)
        else:
            plan.homes.mkdir(mode=0o700, exist_ok=True)
    except OSError as problem:
        raise CommandError(f"{problem.filename}: {problem.strerror}.") from None
