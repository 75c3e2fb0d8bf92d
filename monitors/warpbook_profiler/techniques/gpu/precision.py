"""Products in a dtype that the chip multiplies slowly."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from warpbook_profiler.advice.chip import Chip, Span
from warpbook_profiler.advice.code.product_code import ProductCode
from warpbook_profiler.advice.evidence import Evidence, Product
from warpbook_profiler.advice.faster_products import faster, multiplied
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, at_line, percent
from warpbook_profiler.checklist.products import (
    EIGHT_BITS,
    HALVES,
    MOST,
    UNTRIED,
    how_to_record,
    times_by_dtype,
    too_few_products,
)
from warpbook_profiler.model.ceilings import DTYPE_LABELS
from warpbook_profiler.techniques.technique import (
    Applied,
    ChangeKind,
    Technique,
    TriedCell,
)

_AS_FAST = (
    "This GPU multiplies float64 as fast as float32; bfloat16, and float32 as TF32, "
    "are faster."
)
#: bits of mantissa
_ROUNDS = "Rounds to {} bits instead of {}: use it where that is exact enough."
_HALF_NAMES = re.compile(r"bf16|bfloat16|half|(?<![a-z0-9])f?16f|f16f16", re.I)
#: Ampere, the first with TF32 and bf16
_LEAST_CAPABILITY = (8, 0)


def precision(evidence: Evidence) -> Iterator[Proposal]:
    """Propose faster dtypes."""
    chip = evidence.chip
    if chip is None:
        return

    def of(*dtypes: str) -> list[Product]:
        return [one for one in evidence.products if one.need.dtype in dtypes]

    yield from _in_tf32(evidence, chip, of("float"))
    yield from _in_bf16(evidence, chip, of("float", "tf32"))
    yield from _in_single(evidence, chip, of("double"))


def _in_tf32(
    evidence: Evidence, chip: Chip, candidates: list[Product]
) -> Iterator[Proposal]:
    if chip.has("tf32"):
        yield from faster(
            evidence,
            candidates,
            lambda one: multiplied(chip, one, "tf32"),
            name="tf32",
            title="Let float32 products use the tensor cores as TF32.",
            what="float32 products run on the FP32 cores",
            edit=lambda code: code.with_setting(*_tf32(candidates)),
            reason=_ROUNDS.format(10, 23),
        )


def _in_bf16(
    evidence: Evidence, chip: Chip, candidates: list[Product]
) -> Iterator[Proposal]:
    if not chip.has("c10::BFloat16"):
        return

    is_single = any(one.need.dtype == "float" for one in candidates)

    def span(one: Product) -> Span | None:
        moved, calls = one.need.size_bytes or 0, max(one.by.calls, 1)
        if "attention" in one.by.name:
            # in half precision another backend takes it
            return chip.attend(
                one.flops,
                "c10::BFloat16",
                one.by.operands.dims[0][-1],
                "backward" in one.by.name,
                calls,
            )
        product = multiplied(chip, one, "c10::BFloat16", 0.5)
        if product is None:
            return None
        # autocast reads the operands once more, and writes them in half the size
        casts = chip.pass_over(moved * 0.75 / calls).times(calls)
        # results of one product are mostly the next one's operands, in bfloat16 already
        return product.plus(0.0, casts.low_ns / 2, casts.high_ns)

    yield from faster(
        evidence,
        candidates,
        span,
        name="bf16",
        title="Multiply in bfloat16: autocast, or model and data in bfloat16.",
        what="products are float32",
        edit=ProductCode.in_bfloat16,
        reason=_ROUNDS.format(7, 23 if is_single else 10),
        # none where model and data are in bfloat16
        casts=evidence.takes("autocast")._replace(low_ns=0.0),
    )


def _in_single(
    evidence: Evidence, chip: Chip, candidates: list[Product]
) -> Iterator[Proposal]:
    single, double = (chip.peak_flops(name) or 0.0 for name in ("float", "double"))
    is_as_fast = single < 1.1 * double
    yield from faster(
        evidence,
        candidates,
        lambda one: multiplied(chip, one, "float", 0.5),
        name="float32",
        title="Use float32 unless the result needs float64.",
        what="products are float64",
        edit=ProductCode.in_float32,
        reason=_ROUNDS.format(23, 52),
        is_shown_without_gain=True,
        no_gain=_AS_FAST if is_as_fast else "",
    )


def _tf32(candidates: list[Product]) -> Iterator[str]:
    """Give what lets products use TF32; convolutions have a setting of their own."""
    convolves = {"conv" in one.by.name for one in candidates}
    if False in convolves:
        yield 'set_float32_matmul_precision("high")'
    if True in convolves:
        yield "backends.cudnn.allow_tf32 = True"


def _judge_cores(facts: Facts) -> Judgement:
    few = too_few_products(facts)
    if few is not None:
        return few
    of_products = min(facts.tensor_share / facts.product_share, 1.0)
    evidence = (
        f"{percent(of_products)} of the time of matrix products and convolutions is "
        f"on tensor cores; they are {percent(facts.product_share)} of the kernels' "
        "time."
    )
    if of_products >= MOST:
        return Judgement("yes", evidence)
    advised = facts.by_change("tf32") or facts.by_change("bf16")
    return advised or facts.without_gain(evidence)


def _judge_half(facts: Facts) -> Judgement:
    few = too_few_products(facts)
    if few is not None:
        return few
    times_ns = times_by_dtype(facts)
    total_ns = sum(times_ns.values())
    if not total_ns:
        return _mixed_by_names(facts)
    half_ns = sum(times_ns[dtype] for dtype in (*HALVES, *EIGHT_BITS))
    shares = ", ".join(
        f"{DTYPE_LABELS.get(dtype, dtype)} {percent(time_ns / total_ns)}"
        for dtype, time_ns in sorted(times_ns.items(), key=lambda pair: -pair[1])
        if time_ns
    )
    evidence = f"Time of products and convolutions by dtype: {shares}."
    if half_ns >= MOST * total_ns:
        line = facts.code.mention("autocast")
        by = f" autocast is in the code{at_line(line)}." if line is not None else ""
        return Judgement("yes", evidence + by)
    advised = facts.by_change("bf16")
    if advised is not None:
        return advised
    if times_ns["double"] >= MOST * total_ns:
        return Judgement(
            "no",
            evidence,
            "Is float64 needed? In bfloat16, or in float32 as TF32, such products "
            f"run on tensor cores. {UNTRIED}",
        )
    return facts.without_gain(evidence)


def _mixed_by_names(facts: Facts) -> Judgement:
    """Judge where operands were not recorded."""
    named = [row for row in facts.profile.kernels if _HALF_NAMES.search(row.name)]
    if named and facts.tensor_share >= MOST * facts.product_share:
        line = facts.code.mention("autocast")
        by = f" autocast is in the code{at_line(line)}." if line is not None else ""
        return Judgement(
            "yes",
            f"{percent(facts.tensor_share)} of the kernels' time is on tensor cores, "
            f"and {_kernels(named)} half precision in their names.{by}",
        )
    return Judgement(
        "unknown", "The products' dtypes are not known.", how_to_record(facts)
    )


def _kernels(rows: Sequence[object]) -> str:
    return "one kernel has" if len(rows) == 1 else f"{len(rows):,} kernels have"


TENSOR_CORES = Question(
    name="tensor-cores",
    text="Do products run on tensor cores?",
    judge=_judge_cores,
    no_where=(
        "less than half of the time of products and convolutions is on tensor cores"
    ),
    lab="tensor-cores",
)


MIXED_PRECISION = Question(
    name="mixed-precision",
    text="Are products in half precision (AMP)?",
    judge=_judge_half,
    no_where=(
        "less than half of the time of products and convolutions is in half precision"
    ),
    lab="mixed-precision",
)


class Tf32:
    """Products of floats on the tensor cores, which round their operands to TF32."""

    name: ClassVar[str] = "tf32"
    advice: ClassVar[str] = (
        "Write torch.set_float32_matmul_precision('high') and "
        "torch.backends.cudnn.allow_tf32 = True."
    )
    warm_ups: ClassVar[int] = 2
    cost: ClassVar[int] = 0
    what: ClassVar[str] = (
        '`torch.set_float32_matmul_precision("high")` and '
        "`torch.backends.cudnn.allow_tf32`"
    )
    not_where: ClassVar[str] = "no float32 product runs on a GPU, or TF32 is on"

    def why_not(self, cell: TriedCell) -> str | None:
        """Return why it does not fit this cell; None if it does."""
        import torch

        if cell.facts.why_no_gpu is not None:
            return cell.facts.why_no_gpu
        if torch.float32 not in cell.facts.product_dtypes("cuda"):
            return "the cell multiplies no float32 matrices on a GPU."
        if torch.cuda.get_device_capability() < _LEAST_CAPABILITY:
            return "this GPU has no TF32."
        if torch.get_float32_matmul_precision() != "highest":
            if torch.backends.cudnn.allow_tf32:
                return "TF32 is already on."
        return None

    @contextlib.contextmanager
    def applied(self, cell: TriedCell) -> Iterator[Applied]:
        """Turn it on; the settings are part of what is put back after each run."""
        import torch

        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True
        yield Applied(cell.run)


class Bf16:
    """Products in bfloat16, by autocast around the body."""

    name: ClassVar[str] = "bf16"
    advice: ClassVar[str] = (
        "Run the forward pass inside: with torch.autocast(DEVICE, torch.bfloat16)."
    )
    warm_ups: ClassVar[int] = 2
    cost: ClassVar[int] = 0
    what: ClassVar[str] = "`torch.autocast` around the body"
    not_where: ClassVar[str] = "no float32 product runs, or the cell uses autocast"

    def why_not(self, cell: TriedCell) -> str | None:
        """Return why it does not fit this cell; None if it does."""
        import torch

        device = cell.facts.device
        if cell.facts.has_autocast:
            return "the cell already uses autocast."
        if torch.float32 not in cell.facts.product_dtypes(device):
            return "the cell multiplies no float32 matrices."
        if device == "cuda":
            if torch.cuda.get_device_capability() < _LEAST_CAPABILITY:
                return "this GPU has no bfloat16."
        return None

    @contextlib.contextmanager
    def applied(self, cell: TriedCell) -> Iterator[Applied]:
        """Put it around the body."""
        import torch

        device = cell.facts.device
        # the cache holds weights as they were before an optimizer's step
        has_cache = not cell.facts.optimizers

        def run() -> object:
            with torch.autocast(device, torch.bfloat16, cache_enabled=has_cache):
                return cell.run()

        yield Applied(run)


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("tf32", "bf16"),
            what="float32 products",
            time="predicted",
            answers=TENSOR_CORES,
            lab="mixed-precision",
        ),
        ChangeKind(
            names=("float32",),
            what=(
                "float64 products; on a GPU that multiplies float64 as fast as float32 "
                "it gains nothing, and the report says so"
            ),
            time="predicted",
            lab="mixed-precision",
        ),
    ),
    rule=precision,
    questions=(TENSOR_CORES, MIXED_PRECISION),
    experiments=(Tf32, Bf16),
    # twice their epsilon, as of results in half precision; of float32 64 times
    roundings={"tf32": 2**-9, "bf16": 2**-6, "float32": 2**-17},
)
