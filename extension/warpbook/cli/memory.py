"""`warpbook memory`: what a model needs of a GPU's memory, before it runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from warpbook.cli.output import print_json
from warpbook.reports.memory import bar_lines
from warpbook_monitors import units
from warpbook_monitors.model_memory.fit import read_gpu_size
from warpbook_monitors.model_memory.models import known_names, read_model
from warpbook_monitors.model_memory.plan import HELP, OPTIONS, Plan
from warpbook_monitors.model_memory.view import (
    MemoryView,
    ModelMemory,
    model_memory,
    view_of_memory,
)
from warpbook_monitors.plain_text import aligned, fitted, printable, shortened

_WIDTH = 80
_MOST_PARTS = 30


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "memory",
        help="compute what training or serving a model needs of a GPU's memory",
        description="Compute by formula what a model needs of a GPU's memory: weights, "
        "gradients, optimizer states, activations, the largest temporary, and in "
        "inference the cache of keys and values. It needs no GPU. Known models: "
        f"{', '.join(known_names())}.",
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a known model, a description of one (.toml, .json), or the config.json "
        "of Hugging Face",
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.add_argument(
        "--fits",
        type=_argument(read_gpu_size),
        metavar="SIZE",
        help="say whether a GPU that is sold with 80GB has room, of which 1GiB is kept "
        "free, and what to change first if not",
    )
    _add_options(parser)
    parser.set_defaults(run=run)


def _add_options(parser: argparse.ArgumentParser) -> None:
    hints = get_type_hints(Plan, include_extras=True)
    groups = {
        option.group: parser.add_argument_group(option.group) for option in OPTIONS
    }
    for option in OPTIONS:
        default, hint = getattr(Plan(), option.field), hints[option.field]
        read = partial(msgspec.convert, type=hint, strict=False)
        settings: dict[str, Any] = {"metavar": "N", "type": _argument(read)}
        if isinstance(default, bool):
            settings = {"action": f"store_{str(not default).lower()}"}
        elif get_origin(hint) is Literal:
            settings = {"choices": get_args(hint), "type": type(default)}
        groups[option.group].add_argument(
            option.name,
            dest=option.field,
            default=default,
            help=HELP[option.field],
            **settings,
        )


def _argument(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def argument(text: str) -> Any:
        try:
            return read(text)
        except (ValueError, msgspec.ValidationError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return argument


def run(options: argparse.Namespace) -> int:
    plan = Plan(**{option.field: getattr(options, option.field) for option in OPTIONS})
    memory = model_memory(read_model(options.model), plan, options.fits)
    if options.json:
        print_json(memory)
    else:
        lines = _text(memory, view_of_memory(memory, plan))
        print("\n".join(fitted(map(printable, lines), _WIDTH)))
    return 0


def _text(memory: ModelMemory, view: MemoryView) -> Iterator[str]:
    rows = [(shortened(memory.name, 40), "parameters", "")]
    for part in memory.parts[:_MOST_PARTS]:
        times = f" ×{part.times}" if part.times > 1 else ""
        label = f"  {shortened(part.block, 40)}{times}: {part.kind}"
        share = units.share(part.parameters / memory.parameters)
        rows.append((label, f"{part.parameters:,}", share))
    if len(memory.parts) > _MOST_PARTS:
        left = sum(part.parameters for part in memory.parts[_MOST_PARTS:])
        rows.append(("  other parts", f"{left:,}", ""))
    rows.append(("  in all", f"{memory.parameters:,}", ""))
    yield from aligned(rows)
    yield from ("", view.title)
    if view.where:
        yield view.where
    yield from aligned(
        [(f"  {'  ' * row.is_part}{row.label}", row.text) for row in view.rows]
    )
    yield ""
    yield from bar_lines(view)
    if view.fit:
        yield from ("", *view.fit)
