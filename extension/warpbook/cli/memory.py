"""`warpbook memory`: what a model needs of a GPU's memory, before it runs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import get_args, get_type_hints

from warpbook.cli.errors import CommandError
from warpbook.cli.json_output import print_json
from warpbook_monitors import units
from warpbook_monitors.model_memory.description import known_names, read_model
from warpbook_monitors.model_memory.fit import Fit
from warpbook_monitors.model_memory.inference import InferenceMemory
from warpbook_monitors.model_memory.plan import Plan
from warpbook_monitors.model_memory.report import ModelMemory, Part, model_memory
from warpbook_monitors.model_memory.training import StageMemory
from warpbook_monitors.plain_text import aligned, fitted, printable, shortened

_WIDTH = 80
_MOST_PARTS = 30
_SIZE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?([KMGT]i?B)", re.IGNORECASE)
_UNITS = {
    prefix + unit: base ** (power + 1)
    for power, prefix in enumerate("kmgt")
    for unit, base in (("b", 1000), ("ib", 1024))
}
_MOST_BYTES = 10**15
_MOST_COUNT = 10_000


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
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
        type=size_bytes,
        metavar="SIZE",
        help="say whether a GPU of 80GB has room, and what to change first if not",
    )
    parser.add_argument(
        "--reserve",
        type=size_bytes,
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
        "--sequence", type=_length, metavar="N", help="tokens of a sequence"
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
    group.add_argument("--optimizer", choices=_values("optimizer"), default="adam")
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
        ("--tp", "of tensor parallelism"),
        ("--pp", "stages of a pipeline"),
        ("--dp", "of data parallelism"),
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


def size_bytes(text: str) -> int:
    """Read "80GB" (of 1000) or "80GiB" (of 1024).

    Raises:
        argparse.ArgumentTypeError: it is neither.
    """
    given = _SIZE.fullmatch(text.strip())
    if given is None:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is no size: write 80GB, 24GiB or 500MB"
        )
    count = int(float(given[1]) * _UNITS[given[2].lower()])
    if count > _MOST_BYTES:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is more than 1000TB")
    return count


def run(options: argparse.Namespace) -> int:
    """Compute it and print it."""
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
        print("\n".join(fitted(map(printable, _text(memory, plan)), _WIDTH)))
    return 0


def _text(memory: ModelMemory, plan: Plan) -> Iterator[str]:
    rows = [(shortened(memory.name, 40), "parameters", "")]
    rows += [_part_row(memory, part) for part in memory.parts[:_MOST_PARTS]]
    if len(memory.parts) > _MOST_PARTS:
        left = sum(part.parameters for part in memory.parts[_MOST_PARTS:])
        rows.append(("  other parts", f"{left:,}", ""))
    rows.append(("  in all", f"{memory.parameters:,}", ""))
    yield from aligned(rows)
    yield ""
    if memory.training:
        heaviest = max(memory.training, key=lambda stage: stage.peak_bytes)
        yield _training_title(memory, plan)
        yield from _where(memory, heaviest.stage, len(memory.training))
        yield from aligned(list(_training_rows(heaviest)))
    else:
        serving = max(memory.inference, key=lambda stage: stage.peak_bytes)
        yield (
            f"Inference of {_work(memory)}, weights in {plan.dtype}, "
            f"cache in {plan.kv_dtype}"
        )
        yield from _where(memory, serving.stage, len(memory.inference))
        yield from aligned(list(_inference_rows(serving)))
    if memory.fit is not None:
        yield ""
        yield from _fit_text(memory.fit)


def _part_row(memory: ModelMemory, part: Part) -> tuple[str, str, str]:
    times = f" ×{part.times}" if part.times > 1 else ""
    return (
        f"  {shortened(part.block, 40)}{times}: {part.kind}",
        f"{part.parameters:,}",
        units.share(part.parameters / memory.parameters),
    )


def _work(memory: ModelMemory) -> str:
    if memory.side:
        return f"{memory.batch:,} images of {memory.side:,} × {memory.side:,}"
    return f"{memory.batch:,} × {memory.tokens:,} tokens"


def _training_title(memory: ModelMemory, plan: Plan) -> str:
    words = [f"Training on {_work(memory)}", f"{plan.precision} precision"]
    words.append(plan.optimizer + (" (fused)" if plan.fused else ""))
    if plan.checkpoint != "none":
        words.append(f"{plan.checkpoint} checkpointing")
    if not plan.flash:
        words.append("no FlashAttention")
    return ", ".join(words)


def _where(memory: ModelMemory, stage: int, stages: int) -> Iterator[str]:
    if stages > 1:
        yield (
            f"On each GPU of stage {stage + 1} of {stages}, the heaviest; "
            f"{memory.gpus:,} GPUs in all:"
        )
    elif memory.gpus > 1:
        yield f"On each of {memory.gpus:,} GPUs:"


def _training_rows(stage: StageMemory) -> Iterator[tuple[str, str]]:
    yield "  weights", units.size(stage.weights_bytes)
    yield "  gradients", units.size(stage.gradients_bytes)
    yield "  optimizer states", units.size(stage.states_bytes)
    yield "  master weights", units.size(stage.master_bytes)
    flight = (
        f", {stage.micro_batches} micro-batches in flight"
        if stage.micro_batches > 1
        else ""
    )
    yield f"  activations{flight}", units.size(stage.activations_bytes)
    for row in stage.activations:
        yield f"    {row.kind}", units.size(row.size_bytes)
    yield "  temporary: logits and loss", units.size(stage.logits_bytes)
    if stage.gathered_bytes:
        yield "  temporary: gathered by ZeRO 3", units.size(stage.gathered_bytes)
    yield "  temporary: optimizer", units.size(stage.step_bytes)
    if stage.peak_block is None:
        moment = "in the optimizer"
    else:
        moment = f"in the backward pass of: {shortened(stage.peak_block, 40)}"
    yield f"  peak, {moment}", units.size(stage.peak_bytes)


def _inference_rows(stage: InferenceMemory) -> Iterator[tuple[str, str]]:
    yield "  weights", units.size(stage.weights_bytes)
    yield "  cache of keys and values", units.size(stage.cache_bytes)
    yield "  temporary: the largest layer", units.size(stage.working_bytes)
    yield "  peak", units.size(stage.peak_bytes)


def _fit_text(fit: Fit) -> Iterator[str]:
    capacity = units.size(fit.capacity_bytes)
    kept = units.size(fit.reserved_bytes)
    answer = "yes" if fit.is_enough else "no"
    yield f"Fits {capacity}, with {kept} kept free: {answer}"
    if fit.is_enough:
        return
    if not fit.changes:
        yield "No change that is known here makes it fit: take a smaller model."
        return
    yield "Change first:" if fit.would_fit else "Not even with all of these:"
    for change in fit.changes:
        needed = units.size(change.peak_bytes)
        yield f"  {change.options}: {change.words}; then {needed}"
