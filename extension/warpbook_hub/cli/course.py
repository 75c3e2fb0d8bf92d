"""Requests of commands to a course, as an instructor."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from msgspec import Struct

from warpbook.class_hub import service_url
from warpbook.cli.labs.hub import hub_token, hub_url
from warpbook.cli.output import CommandError
from warpbook.hub_client import HubClient, HubProblem
from warpbook.hub_protocol import LEARNERS

_Answer = TypeVar("_Answer", bound=Struct)


def add_hub_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a course and an instructor's token."""
    add = parser.add_argument
    add(
        "--hub",
        default="",
        metavar="URL",
        help="of the hub (default: WARPBOOK_HUB_URL)",
    )
    add("--course", default="gpu", metavar="ID", help="of the course (default: gpu)")
    add(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="with an instructor's token (default: WARPBOOK_HUB_TOKEN)",
    )


def ask_course(
    options: argparse.Namespace,
    what: str,
    asked: Struct,
    kind: type[_Answer],
    wait_s: float,
) -> _Answer:
    """Send a request, and return the course's answer.

    Raises:
        CommandError: the hub refuses it or can't be reached.
    """
    try:
        client = HubClient(
            service_url(hub_url(options)),
            hub_token(options, "teach"),
            LEARNERS,
            wait_s,
            uses_proxies=True,
        )
        return client.ask(f"courses/{quote(options.course)}/{what}", kind, asked)
    except HubProblem as problem:
        raise CommandError(str(problem)) from None
