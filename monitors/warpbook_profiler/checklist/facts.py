"""A question of the checklist, and what it may look at: profile, source, process."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from warpbook_monitors import units
from warpbook_monitors.verdict_kinds import Kind
from warpbook_profiler.checklist.answers import Judgement, Part
from warpbook_profiler.checklist.code_settings import CodeSettings
from warpbook_profiler.checklist.process import ProcessState
from warpbook_profiler.facts.kernels import (
    is_communication,
    only_moves,
    uses_tensor_cores,
)
from warpbook_profiler.facts.solver_flops import SOLVERS
from warpbook_profiler.model.cell_profile import AnnotationRow, CellProfile, KernelRow
from warpbook_profiler.model.change import MOST_CHANGES, Change
from warpbook_profiler.model.figures import Metrics
from warpbook_profiler.model.pictures import RooflinePoint

_BACKWARD = re.compile(r"autograd::engine|\w*Backward\d*$|Optimizer\.step#")
_PRODUCT = re.compile(
    r"aten::(\w*conv|addm[mv]|b?mm|mv|baddbmm|linear|matmul|einsum|\w*attention"
    r"|_scaled_mm|\w*(lstm|gru|rnn))"
)
_LAYER = re.compile(r"aten::(\w*_norm|\w*dropout|embedding|\w*pool\dd)")
_CONVOLUTION = re.compile(r"(aten|cudnn)::\w*conv")


class NoGpuWork(LookupError):
    """A figure of the GPU was asked for, and the profile has none."""


@dataclass(frozen=True)
class Question:
    """One question of the checklist."""

    #: what documents call it
    name: str
    text: str
    judge: Callable[[Facts], Judgement]
    #: of the documents: where the answer is "no"
    no_where: str
    #: id of the lab that teaches it
    lab: str | None = None
    #: of what work it is
    part: Part = "any work"
    #: nothing can be said of it where no work of a GPU was recorded
    is_of_gpu: bool = True


@dataclass(frozen=True)
class Facts:
    """One profiled window, with what is known of its code and process."""

    profile: CellProfile
    code: CodeSettings
    process: ProcessState
    #: by the name of a question, the names of the changes that answer it
    answering: Mapping[str, tuple[str, ...]]

    @property
    def metrics(self) -> Metrics:
        """Give the figures of the GPU.

        Raises:
            NoGpuWork: there are none.
        """
        if self.profile.metrics is None:
            raise NoGpuWork
        return self.profile.metrics

    @property
    def has_gpu_work(self) -> bool:
        """Tell whether anything of a GPU was recorded."""
        return self.profile.metrics is not None and bool(self.profile.gpu_busy_ns)

    @cached_property
    def host_names(self) -> frozenset[str]:
        """Give the names of operators, and of parts that the program names."""
        profile = self.profile
        rows: Iterable[str] = (
            *(row.name for row in profile.operators),
            *(node.name for node in profile.call_tree),
            *(row.name for row in profile.annotations),
        )
        return frozenset(rows)

    @property
    def trains(self) -> bool:
        """Tell whether a backward pass or an optimizer's step is in the window."""
        return any(_BACKWARD.match(name) for name in self.host_names)

    @property
    def has_layers(self) -> bool:
        """Tell whether operators of a model's layers are in the window."""
        layers = any(_LAYER.match(name) for name in self.host_names)
        return layers or self.has_products

    @property
    def has_products(self) -> bool:
        """Tell whether an operator multiplies matrices or convolves."""
        return any(_PRODUCT.match(name) for name in self.host_names)

    @property
    def has_convolutions(self) -> bool:
        """Tell whether an operator convolves."""
        return any(_CONVOLUTION.match(name) for name in self.host_names)

    def annotations(self, prefix: str) -> list[AnnotationRow]:
        """Give the parts of the program whose names begin so."""
        rows = self.profile.annotations
        return [row for row in rows if row.name.startswith(prefix)]

    # what multiplies

    @property
    def has_shapes(self) -> bool:
        """Tell whether operands were recorded."""
        return self.metrics.modelled_share is not None

    @cached_property
    def products(self) -> tuple[RooflinePoint, ...]:
        """Give the products and convolutions whose operands are known."""
        points = self.profile.roofline
        return tuple(
            point for point in points if point.flops and point.name not in SOLVERS
        )

    @cached_property
    def product_kernels(self) -> tuple[KernelRow, ...]:
        """Give the kernels whose names say that they multiply."""
        return tuple(row for row in self.profile.kernels if _multiplies(row.name))

    @property
    def product_share(self) -> float:
        """Give the share of the kernels' time in products and convolutions."""
        by_name = sum(row.share_ratio for row in self.product_kernels)
        by_operator = sum(point.share_ratio for point in self.products)
        return min(max(by_name, by_operator), 1.0)

    @property
    def tensor_share(self) -> float:
        """Give the share of the kernels' time on tensor cores."""
        return self.metrics.tensor_core_share or 0.0

    # what was predicted

    @property
    def bare_busy_share(self) -> float:
        """Give how much of the time the GPU is busy, without the profiler if known."""
        bare = self.profile.bare
        if bare is not None:
            return min(bare.gpu_busy_ns / max(bare.time_ns, 1), 1.0)
        return self.metrics.gpu_busy_ns / max(self.metrics.window_ns, 1)

    def cause_share(self, *kinds: Kind) -> float:
        """Give the share of the time that causes of these kinds explain."""
        findings = self.profile.findings
        return sum(finding.share for finding in findings if finding.kind in kinds)

    def changes(self, *names: str) -> list[Change]:
        """Give the changes with these names, the one that gains most first."""
        return [change for change in self.profile.changes if change.name in names]

    def advised(self, question: Question) -> Judgement | None:
        """Answer by the change for this question that gains most, if any is advised."""
        return self.by_change(*self.answering[question.name])

    def by_change(self, *names: str) -> Judgement | None:
        """Answer by the change with one of these names that gains most, if any is.

        One that gains is missing; one that is named for gaining nothing does not apply.
        """
        changes = self.changes(*names)
        if not changes:
            return None
        best = changes[0]
        if best.gains_nothing:
            evidence = f"{best.evidence} {best.sentence}"
            return Judgement("not applicable", evidence)
        trials = [
            f"Measured: {trial.sentence}"
            for trial in self.profile.trials
            if trial.name == best.name
        ]
        return Judgement(
            "no", best.evidence, " ".join([best.title, best.sentence, *trials])
        )

    def without_gain(self, evidence: str) -> Judgement:
        """Answer where no change of an item is advised: it gains too little here."""
        profile = self.profile
        if profile.bare is None:
            return Judgement(
                "unknown",
                f"{evidence} The gain of a change can't be predicted from this trace.",
                "Record it with torch.profiler, or profile the cell by %%gpuprof.",
            )
        if len(profile.changes) >= MOST_CHANGES:
            return Judgement(
                "unknown",
                f"{evidence} Other changes gain more.",
                "Make those first, and profile again.",
            )
        return Judgement(
            "not applicable",
            f"{evidence} A change is too small here, or gains less than 5 % in a "
            "replay of the trace.",
        )


def _multiplies(name: str) -> bool:
    on_tensor_cores = uses_tensor_cores(name)
    if on_tensor_cores is None:
        return False
    return on_tensor_cores or not (only_moves(name) or is_communication(name))


def percent(share: float) -> str:
    """Write a share of something."""
    return units.share(share)


def at_line(line: int | None) -> str:
    """Write where in the source something is."""
    return "" if line is None else f" (line {line})"
