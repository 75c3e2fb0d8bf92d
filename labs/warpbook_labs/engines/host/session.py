"""One submission before the referee: its harness, children, cases and timed units."""

from __future__ import annotations

import os
from pathlib import Path

from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.engines.host.child_handle import CantBegin, Lost, Raised
from warpbook_labs.engines.host.correctness import fallen, try_case
from warpbook_labs.engines.host.harness import Harness, TooLarge
from warpbook_labs.engines.host.lane import HostRequest
from warpbook_labs.engines.host.memory import laid_out, largest
from warpbook_labs.engines.host.messages import Load
from warpbook_labs.engines.host.timing import DrawnInputs, Trials
from warpbook_labs.errors import BadLab
from warpbook_labs.gpu.driver import Device
from warpbook_labs.gpu.jobs import Began, CaseOutcome, device_case
from warpbook_labs.gpu.ratio import Side, Stopping
from warpbook_labs.gpu.speed import Judge, Timed
from warpbook_labs.lab.catalogues import catalogues
from warpbook_labs.lab.files import VAULT
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.results.device import DeviceCase
from warpbook_monitors.data_folder import data_folder

__all__ = ["Session", "TooLarge"]

_PRECISION = 0.005


class Session:
    """All that one submission is given."""

    def __init__(
        self, request: HostRequest, loaded: LoadedLab, device: Device | None
    ) -> None:
        """Take the memory; nothing is started yet.

        Raises:
            TooLarge: there is not enough.
            BadLab: the lab's own Python fails.
        """
        self._request, self._loaded, self._device = request, loaded, device
        self.parameters = loaded.lab.parameters
        self._speed = loaded.lab.speed if request.is_timed else None
        layouts = [laid_out(self.parameters, case.sizes) for case in request.cases]
        self._drawn = DrawnInputs({}, {}, {})
        if self._speed is not None:
            self._drawn = DrawnInputs.of(loaded, self._speed)
            timed = laid_out(self.parameters, self._speed.sizes, self._speed.calls)
            layouts.append(timed)
        self._size_bytes = largest(*layouts)
        self._is_staged, self._is_early = request.is_staged, True
        self._isolation = ""
        #: why it was begun in a worse way, in words
        self._setbacks: list[str] = []
        self.harness = self._made()

    def _made(self) -> Harness:
        drawn = self._drawn
        try:
            return Harness(
                self._device,
                self._size_bytes,
                drawn.pools,
                drawn.places,
                self._is_staged,
                ("learner",) if self._speed is None else ("learner", "baseline"),
            )
        except OSError as problem:
            if self._is_staged:
                raise
            self._is_staged = True
            self._setbacks.append(str(problem))
            return self._made()

    @property
    def has_learner(self) -> bool:
        return "learner" in self.harness.children

    @property
    def is_timed(self) -> bool:
        return self._speed is not None

    @property
    def timed_sizes(self) -> dict[str, int]:
        return {} if self._speed is None else dict(self._speed.sizes)

    def began(self) -> Began:
        """Tell what runs, and how it is shut in."""
        pids = tuple(child.pid for child in self.harness.children.values())
        words = self._isolation
        if self.harness.transport == "staged":
            words += (
                ". CUDA shares no memory between processes here, so buffers are copied "
                "from and to the host's, and what that takes is taken off"
            )
        words += "".join(
            f". It was begun again: {setback}" for setback in self._setbacks
        )
        if self._device is None:
            return Began("the CPU", "cpu", pids, words)
        return Began(self._device.name, self._device.architecture, pids, words)

    def start(self) -> str:
        """Start what is missing, and have it load its source.

        Returns:
            Why the learner's can't be loaded, in words; empty if it was.

        Raises:
            CantBegin: no child can begin here.
            BadLab: the baseline can't be loaded.
        """
        missing: list[Side] = ["learner"]
        if self._speed is not None and "baseline" not in self.harness.children:
            missing.append("baseline")
        begun = self._begin(missing)
        if self._speed is not None:
            # before a learner's line has run that could leave work there
            self.harness.look_when_quiet()
        if "baseline" in begun and self._speed is not None:
            self._load("baseline", host_baseline(self._loaded))
        problem = self._load("learner", self._request.source)
        if problem:
            self._drop()
        return problem

    def _begin(self, missing: list[Side]) -> list[Side]:
        """Start children side by side, in the best way that this system allows."""
        bounds, is_traced = self._request.bounds, self._request.is_traced
        for side in missing:
            self.harness.start(side, self._hidden(), bounds, self._is_early, is_traced)
        try:
            for side in missing:
                self._isolation = self.harness.children[side].begin()
        except (CantBegin, Lost) as problem:
            was_staged = self._is_staged
            worse = self._worse(problem)
            self.harness.close()
            if not worse:
                raise
            self._setbacks.append(str(problem))
            if self._is_staged != was_staged:
                self.harness.give_back()
                self.harness = self._made()
            everyone: list[Side] = ["learner"]
            if self._speed is not None:
                everyone.append("baseline")
            return self._begin(everyone)
        return missing

    def _worse(self, problem: CantBegin | Lost) -> bool:
        """Find what may help: files closed later, then buffers that are staged."""
        if self._is_early:
            self._is_early = False
        elif problem.kind == "no sharing" and not self._is_staged:
            self._is_early, self._is_staged = True, True
        else:
            return False
        return True

    def _load(self, side: Side, text: str) -> str:
        child = self.harness.children[side]
        try:
            order = Load(text, self._loaded.given)
            child.ask(order, self._request.bounds.prepare_s)
            child.stop()
        except (Lost, Raised) as problem:
            if side == "baseline":
                raise BadLab(f"The lab's baseline can't be loaded: {problem}") from None
            return str(problem)
        return ""

    def _hidden(self) -> tuple[str, ...]:
        """Name what no child may read where it lies in what it is given.

        These are right solutions and cases of all labs, and what others handed in.
        """
        folders = [*catalogues().folders, self._loaded.folder, data_folder()]
        vault = os.environ.get(VAULT)
        folders += [Path(vault)] if vault else []
        return tuple(str(folder.resolve()) for folder in folders)

    def _drop(self) -> None:
        child = self.harness.children.pop("learner", None)
        if child is not None:
            child.close()

    def refused(self, case: DrawnCase, problem: str) -> DeviceCase:
        """Tell of a case that a source was never request, for it can't be loaded."""
        return device_case(case, CaseOutcome("raised", problem))

    def tried(self, case: DrawnCase) -> DeviceCase:
        """Try a case; a process that is lost by it is gone afterwards."""
        try:
            result = try_case(self.harness, self._loaded, case, self._request.bounds)
        except Lost as problem:
            self._drop()
            return fallen(case, problem)
        if self.harness.children["learner"].is_over:
            self._drop()
        return result

    def timed(self) -> Timed:
        """Time it.

        Raises:
            WrongOutput: a unit of it was wrong.
            Disturbed: somebody else works on the GPU.
            DriverError: the baseline fails.
        """
        if self._speed is None:
            raise ValueError(f"{self._loaded.lab.id} has no speed to be graded.")
        judge = Judge(self._loaded.lab, self._speed, self._request.limit_card)
        request = self._request
        trials = Trials(
            self.harness, self._loaded, self._speed, self._drawn, request.bounds
        )
        stopping = Stopping(request.least_pairs, request.most_pairs, _PRECISION)
        times = trials.run(stopping, lambda *taken: judge.is_enough(stopping, *taken))
        return Timed(
            judge.result(times), judge.flags(times), times.since_ns, times.until_ns
        )

    def close(self) -> None:
        self.harness.close()


def host_baseline(loaded: LoadedLab) -> str:
    """Give the source that the learner's is compared with, and whose results count.

    So it must be right, as no starter is.
    """
    return loaded.baseline or loaded.reference
