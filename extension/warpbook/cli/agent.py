"""`warpbook agent`: this node's GPUs for Prometheus, without Jupyter."""

from __future__ import annotations

import argparse

from warpbook_monitors import agent


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "agent",
        help="serve this node's GPUs to Prometheus, without Jupyter",
        description=agent.DESCRIPTION,
    )
    agent.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    every_s = agent.holders_every_s(options)
    agent.serve(options.host, options.port, options.dcgm_aliases, every_s)
    return 0
