"""`warpbook labs submit --hub`: hands a lab in to a course's hub."""

from __future__ import annotations

import argparse
import os
import stat
import sys
import time
from pathlib import Path
from urllib.parse import urljoin

from warpbook.class_hub import OWN_TOKEN, SERVER_TOKEN, URL, ClassHub, PublishedLab
from warpbook.class_hub_words import receipt_rows, state_words
from warpbook.cli.output import CommandError, print_json
from warpbook.hub_client import HubProblem
from warpbook.hub_protocol import SubmissionState
from warpbook_labs.errors import BadSource
from warpbook_labs.lab.catalogues import folder_of, read_lab
from warpbook_labs.lab.languages.table import LANGUAGES, language_of
from warpbook_labs.lab.sources import read_source
from warpbook_monitors.plain_text import joined, printable

_LOOK_S = 2.0
_MOST_TOKEN = 1_000


def submit_to_hub(options: argparse.Namespace) -> int:
    """Hand in and tell the receipt; with `--wait`, tell the result, too."""
    try:
        hub = ClassHub(hub_url(options), hub_token(options), say=_say)
        source = read_source(_file(options))
        lab = hub.find(Path(options.lab).name.replace("_", "-"), options.course)
        receipt = hub.hand_in(lab, source, options.replace)
        state = hub.state(lab, receipt.submission)
        if not options.json:
            rows = receipt_rows(receipt, state)
            # a hub's own server reaches it at an address that no browser does
            page = urljoin(options.hub or "", hub.page(lab, receipt.submission))
            rows.append(("page", page))
            print(joined(f"{name:<11} {value}" for name, value in rows), flush=True)
        if options.wait:
            state = _awaited(hub, lab, state)
    except (HubProblem, BadSource) as problem:
        raise CommandError(str(problem)) from None
    if options.json:
        print_json({"receipt": receipt, "state": state})
    elif options.wait:
        print(printable(f"{'now':<11} {state_words(state)}"))
    is_wrong = state.result is not None and state.result.facts.verdict != "right"
    return 1 if options.wait and is_wrong else 0


def _awaited(
    hub: ClassHub, lab: PublishedLab, state: SubmissionState
) -> SubmissionState:
    while state.state in ("waits", "runs"):
        time.sleep(_LOOK_S)
        state = hub.state(lab, state.receipt.submission)
    return state


def _say(words: str) -> None:
    print(printable(words), file=sys.stderr, flush=True)


def hub_url(options: argparse.Namespace) -> str:
    url = options.hub or os.environ.get(URL, "")
    if not url:
        raise CommandError("Say which hub: --hub https://host:8000/")
    return str(url)


def hub_token(options: argparse.Namespace, scope: str = "submit") -> str:
    """Give the token, which is never an argument: others of a machine see those.

    Raises:
        CommandError: there is none, or others can read its file.
    """
    if options.token_file is None:
        token = os.environ.get(OWN_TOKEN) or os.environ.get(SERVER_TOKEN) or ""
    else:
        try:
            with options.token_file.open(encoding="ascii", errors="replace") as file:
                if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                    raise CommandError(
                        f"{options.token_file}: others can read it. Do: chmod 600 "
                        f"{options.token_file}"
                    )
                token = file.readline(_MOST_TOKEN)
        except OSError as problem:
            raise CommandError(f"{options.token_file}: {problem.strerror}.") from None
    token = token.strip()
    if not token or not (token.isascii() and token.isprintable()):
        raise CommandError(
            "There is no token. Ask the hub for one, on its page `Token`, with the "
            f"scope custom:warpbook:{scope}, and put it into a file for your eyes only "
            f"(--token-file), or into {OWN_TOKEN}."
        )
    return token


def _file(options: argparse.Namespace) -> Path:
    """Find the source: as it is named, or where `open` put it."""
    if options.file is not None:
        return Path(options.file)
    folder = Path(Path(options.lab).name.replace("_", "-"))
    names = {language.source_name for language in LANGUAGES.values()}
    # the lab itself need not be here
    home = folder_of(folder.name)
    if home is not None:
        names = {language_of(read_lab(home / "lab.toml")).source_name}
    files = sorted(folder / name for name in names if (folder / name).is_file())
    if len(files) != 1:
        raise BadSource(f"Name your file: there is no one source in {folder}/ here.")
    return files[0]
