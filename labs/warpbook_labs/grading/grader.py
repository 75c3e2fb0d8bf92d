"""What one language does with a submission, by all engines that take it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.gpu.gpu import Gpu
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.results.check import CaseResult, CheckResult
from warpbook_labs.results.device import DeviceResult


class Draws(NamedTuple):
    """A source checked with several draws of hidden cases."""

    #: of all draws, or of the first that failed
    result: CheckResult
    #: by seed, each with the cases that are shown
    cases: dict[int, list[CaseResult]]


class Grader(ABC):
    """How submissions of one language are graded."""

    @abstractmethod
    def get_ready(self) -> None:
        """Start what takes long to start, and don't wait for it."""

    @abstractmethod
    def grade(self, submission: Submission) -> CheckResult:
        """Return how it does with what the lab shows, and what its seed draws.

        With a seed it is graded for speed, too, where there is a GPU.

        Raises:
            NotInstalled: a compiler or PyTorch is not here; so do those below.
            BadLab: the lab's own Python fails; so do those below.
        """

    @abstractmethod
    def check_draws(self, submission: Submission, seeds: Sequence[int]) -> Draws:
        """Check with several draws, without a GPU, for a lab's author."""

    @abstractmethod
    def refuse_other_draws(self, loaded: LoadedLab, seeds: Sequence[int]) -> None:
        """Refuse a lab that draws something else each time, of the same seed.

        Raises:
            BadLab: it does.
        """

    @abstractmethod
    def record_trace(
        self, gpu: Gpu, submission: Submission, trace: Path, telemetry: Path
    ) -> None:
        """Record what a source does on a GPU.

        Raises:
            NoTrace: it could not be recorded.
        """


class CaseEngines(ABC):
    """The engines that run cases of one language: one without a GPU, and one on it."""

    @abstractmethod
    def get_ready(self) -> None:
        """Start what takes long to start, and don't wait for it."""

    def fitted(
        self, submission: Submission, cases: Sequence[DrawnCase]
    ) -> Sequence[DrawnCase]:
        """Fit a case that is drawn at random to what a source may have forgotten."""
        return cases

    @abstractmethod
    def check(self, submission: Submission, cases: Sequence[DrawnCase]) -> CheckResult:
        """Check without a GPU; cases are in the result in their order.

        All of them are, unless the submission may stop at a wrong one.
        """

    @abstractmethod
    def run_on_gpu(
        self,
        gpu: Gpu,
        submission: Submission,
        cases: Sequence[DrawnCase],
        is_timed: bool,
        until_checked: Callable[[], object],
    ) -> DeviceResult:
        """Check on a GPU, and time what is right if that is asked.

        Args:
            until_checked: returns when the check without a GPU, which needs the CPU,
                has ended; it is waited for before the CPU's time is graded.

        Raises:
            NotOnGpu: it can't be run there, for no fault of the source.
        """

    @abstractmethod
    def has_veto(self, result: CheckResult) -> bool:
        """Whether what was found without a GPU counts although all is right on it."""

    @abstractmethod
    def record_trace(
        self, gpu: Gpu, submission: Submission, trace: Path, telemetry: Path
    ) -> None:
        """Record what a source does on a GPU; see `Grader`."""
