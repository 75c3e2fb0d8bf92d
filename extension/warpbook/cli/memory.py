"""`warpbook memory`: what a model needs of a GPU's memory, before it runs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from typing import get_args, get_type_hints

from warpbook.cli.errors import CommandError
from warpbook.cli.json_output import print_json
from warpbook.reports.memory import bar_lines
from warpbook_monitors import units
from warpbook_monitors.model_memory.description import known_names, read_model
from warpbook_monitors.model_memory.plan import Plan
from warpbook_monitors.model_memory.report import ModelMemory, Part, model_memory
from warpbook_monitors.model_memory.sizes import read_gpu_size, read_size
from warpbook_monitors.model_memory.view import MemoryView, Row, view_of_memory
from warpbook_monitors.plain_text import aligned, fitted, printable, shortened

_WIDTH = 80
_MOST_PARTS = 30
_MOST_COUNT = 10_000


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
        type=_gpu_bytes,
        metavar="SIZE",
        help="say whether a GPU that is sold with 80GB has room, and what to change "
        "first if not",
    )
    parser.add_argument(
        "--reserve",
        type=_size_bytes,
        metavar="SIZE",
        default=10**9,
        help="what --fits keeps free for the CUDA context and fragmentation; "
        "1GB if left out",
    )
    parser.add_argument(
        "--batch",
        type=_count,
        default=1,
        metavar="N",
        help="sequences or images of a micro-batch on a GPU; 1 if left out",
    )
    parser.add_argument(
        "--sequence",
        type=_length,
        metavar="N",
        help="tokens; the model's own if left out",
    )
    parser.add_argument("--image", type=_length, metavar="N", help="side in pixels")
    parser.add_argument(
        "--no-flash", action="store_true", help="attention that keeps its scores"
    )
    _add_training(parser)
    _add_parallel(parser)
    group = parser.add_argument_group("inference")
    group.add_argument(
        "--inference", action="store_true", help="serve the model instead of training"
    )
    group.add_argument(
        "--dtype", choices=_values("dtype"), default="bf16", help="of weights"
    )
    group.add_argument(
        "--kv-dtype",
        choices=_values("kv_dtype"),
        default="bf16",
        help="of cached keys and values",
    )
    parser.set_defaults(run=run)


def _add_training(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("training")
    group.add_argument(
        "--precision",
        choices=_values("precision"),
        default="mixed",
        help="mixed: 16 bits with fp32 master weights; autocast: fp32 with torch.amp; "
        "bf16: all of it; fp32",
    )
    group.add_argument(
        "--optimizer", choices=_values("optimizer"), default="adam", help="with states"
    )
    group.add_argument(
        "--fused", action="store_true", help="an optimizer without temporaries"
    )
    group.add_argument(
        "--checkpoint",
        choices=_values("checkpoint"),
        default="none",
        help="activations that the backward pass computes anew: of each layer (full), "
        "or attention's scores (selective)",
    )
    group.add_argument(
        "--micro-batches",
        type=_count,
        default=1,
        metavar="N",
        help="of a step, whose gradients add up",
    )


def _add_parallel(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("several GPUs")
    for option, words in (
        ("--tp", "GPUs of tensor parallelism"),
        ("--pp", "stages of a pipeline with the schedule 1F1B"),
        ("--dp", "GPUs of data parallelism"),
    ):
        group.add_argument(option, type=_count, default=1, metavar="N", help=words)
    group.add_argument(
        "--sp", action="store_true", help="sequence parallelism beside --tp"
    )
    group.add_argument(
        "--zero",
        type=int,
        choices=(0, 1, 2, 3),
        default=0,
        help="stage of ZeRO among the GPUs of --dp",
    )


def _values(field: str) -> tuple[str, ...]:
    """List what a field of the plan may be."""
    values: tuple[str, ...] = get_args(get_type_hints(Plan)[field])
    return values


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= _MOST_COUNT:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is no count: write a whole number of 1 or more, "
            f"{_MOST_COUNT} at most"
        )
    return int(text)


def _length(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,7}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is no length: write a whole number of 1 or more"
        )
    return int(text)


def _gpu_bytes(text: str) -> int:
    return _size_bytes(text, read_gpu_size)


def _size_bytes(text: str, read: Callable[[str], int] = read_size) -> int:
    """Read a size.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        return read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(options: argparse.Namespace) -> int:
    plan = Plan(
        batch=options.batch,
        tokens=options.sequence,
        side=options.image,
        precision=options.precision,
        optimizer=options.optimizer,
        fused=options.fused,
        checkpoint=options.checkpoint,
        flash=not options.no_flash,
        tensor=options.tp,
        sequence_parallel=options.sp,
        pipeline=options.pp,
        micro_batches=options.micro_batches,
        data=options.dp,
        zero=options.zero,
        dtype=options.dtype,
        kv_dtype=options.kv_dtype,
    )
    if options.fits is not None and options.reserve >= options.fits:
        raise CommandError("--reserve leaves nothing of --fits: make it smaller")
    memory = model_memory(
        read_model(options.model),
        plan,
        is_inference=options.inference,
        capacity_bytes=options.fits,
        reserved_bytes=options.reserve,
    )
    if options.json:
        print_json(memory)
    else:
        view = view_of_memory(memory, plan)
        print("\n".join(fitted(map(printable, _text(memory, view)), _WIDTH)))
    return 0


def _text(memory: ModelMemory, view: MemoryView) -> Iterator[str]:
    rows = [(shortened(memory.name, 40), "parameters", "")]
    rows += [_part_row(memory, part) for part in memory.parts[:_MOST_PARTS]]
    if len(memory.parts) > _MOST_PARTS:
        left = sum(part.parameters for part in memory.parts[_MOST_PARTS:])
        rows.append(("  other parts", f"{left:,}", ""))
    rows.append(("  in all", f"{memory.parameters:,}", ""))
    yield from aligned(rows)
    yield ""
    yield view.title
    if view.where:
        yield view.where
    yield from aligned([_row(row) for row in view.rows])
    yield ""
    yield from bar_lines(view.bar)
    if view.fit:
        yield ""
        yield from view.fit


def _row(row: Row) -> tuple[str, str]:
    indent = "    " if row.is_part else "  "
    return indent + row.label, row.text


def _part_row(memory: ModelMemory, part: Part) -> tuple[str, str, str]:
    times = f" ×{part.times}" if part.times > 1 else ""
    return (
        f"  {shortened(part.block, 40)}{times}: {part.kind}",
        f"{part.parameters:,}",
        units.share(part.parameters / memory.parameters),
    )
