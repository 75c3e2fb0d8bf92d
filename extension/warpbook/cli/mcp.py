"""`warpbook mcp`: tools for assistants over stdin and stdout."""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
from pathlib import Path
from urllib.parse import urlsplit

from warpbook.cli.output import CommandError

#: Jupyter's own name for it
TOKEN = "JUPYTER_TOKEN"


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "mcp",
        help="give an assistant tools that read GPUs, cells and traces",
        description="Speak the Model Context Protocol on stdin and stdout, for an "
        "editor or assistant that starts this command. With --server the tools are "
        "those of a Jupyter server; without it they read this machine's GPUs and trace "
        "files. Nothing listens on a port.",
    )
    parser.add_argument(
        "--server",
        nargs="?",
        const="",
        metavar="URL",
        help="of a Jupyter server with warpbook; the one that this account runs if URL "
        f"is left out. Its token is in {TOKEN}, or found as `jupyter server list` "
        "finds it",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        action="append",
        metavar="FOLDER",
        help="without --server: of trace files that may be read, with those below it; "
        "once or more, the current folder if left out",
    )
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    if options.server is not None and options.folder:
        options.parser.error("--folder is for this machine, without --server")
    if importlib.util.find_spec("mcp") is None:
        raise CommandError("Install the tools first: pip install 'warpbook[mcp]'")
    if options.server is None:
        folders = options.folder or [Path.cwd()]
        for folder in folders:
            if not folder.is_dir():
                raise CommandError(f"{folder} is no folder.")
        asyncio.run(_own(folders))
    else:
        asyncio.run(_forward(*_server(options.server)))
    return 0


async def _own(folders: list[Path]) -> None:
    from warpbook.mcp.forward import over_pipe
    from warpbook.mcp.protocol_server import protocol_server
    from warpbook.mcp.tools import READING_TOOLS
    from warpbook.server.assistants.own_machine import own_machine

    async with own_machine(folders) as source:
        await over_pipe(protocol_server(READING_TOOLS, lambda _: source))


async def _forward(url: str, token: str) -> None:
    from warpbook.mcp.forward import NoServer, forwarding, over_pipe

    try:
        async with forwarding(url, token) as server:
            await over_pipe(server)
    except NoServer as problem:
        raise CommandError(str(problem)) from None


def _server(url: str) -> tuple[str, str]:
    """Find a server's address, with a slash at its end, and its token.

    Raises:
        CommandError: which one is meant is not known, or its token is not.
    """
    from jupyter_server.serverapp import list_running_servers

    parts = urlsplit(url)
    if parts.query or parts.username:
        raise CommandError(
            f"Everybody here sees a command line: put the token into {TOKEN}."
        )
    running = {server["url"]: server["token"] for server in list_running_servers()}
    if not url:
        if len(running) != 1:
            found = ", ".join(running) or "none"
            raise CommandError(f"Which server? Give its URL. Running here: {found}.")
        (url,) = running
    if urlsplit(url).scheme not in ("http", "https"):
        raise CommandError("The URL of a server begins with http:// or https://.")
    url = url.rstrip("/") + "/"
    token = os.environ.get(TOKEN) or running.get(url)
    if not token:
        raise CommandError(f"The token of {url} is not known: put it into {TOKEN}.")
    return url, token
