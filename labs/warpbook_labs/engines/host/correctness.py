"""One case of host code: `prepare` once, `run` several times, each call judged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.cases import execution
from warpbook_labs.cases.comparison import with_inputs, wrong_words
from warpbook_labs.cases.preparation import Arrays, OwnPython
from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.engines.host.child_handle import Lost, Raised
from warpbook_labs.engines.host.harness import Harness
from warpbook_labs.engines.host.lane import Bounds
from warpbook_labs.engines.host.memory import Layout, laid_out
from warpbook_labs.engines.host.messages import Prepare, Slot
from warpbook_labs.gpu.jobs import CaseOutcome, device_case
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.shown_cases import calls_of, generator_of
from warpbook_labs.results.device import DeviceCase
from warpbook_labs.results.disclosure import kind_alone


def try_case(
    harness: Harness, loaded: LoadedLab, case: DrawnCase, bounds: Bounds
) -> DeviceCase:
    """Run one case in the learner's process, which stands still afterwards.

    Raises:
        Lost: the process is of no use any more.
    """
    layout = laid_out(loaded.lab.parameters, case.sizes)
    child = harness.children["learner"]
    python, sizes = OwnPython(loaded), dict(case.sizes)
    of = calls_of(loaded.lab)
    outcome = CaseOutcome("", "")
    try:
        child.ask(Prepare(sizes, layout.slots), bounds.prepare_s)
        for number in range(of):
            given = python.inputs(sizes, case.values, generator_of(case.seed, number))
            outcome = _call(harness, loaded, given, layout, bounds)
            if not outcome.kind:
                outcome = _compared(harness, python, given, sizes, layout)
                if outcome.wrong is not None and not case.is_hidden:
                    wrong = with_inputs(outcome.wrong, loaded.lab, given, sizes)
                    outcome = outcome._replace(wrong=wrong)
            if outcome.kind:
                if outcome.kind != "raised":
                    words = f"In call {number + 1} of {of}: {outcome.message}"
                    outcome = outcome._replace(message=words)
                break
    except Raised as problem:
        outcome = CaseOutcome("raised", str(problem))
    child.stop()
    if outcome.kind == "raised" and case.is_hidden:
        # a learner can put inputs into the rest
        name = outcome.message.partition(": ")[0].rpartition(" ")[2]
        outcome = CaseOutcome("raised", kind_alone(name))
    return device_case(case, outcome)


def fallen(case: DrawnCase, problem: Lost) -> DeviceCase:
    """Tell of a case at which the process was lost."""
    words = str(problem)
    if case.is_hidden:
        # how it ends, and what it says last, are of its own choice, too
        words = problem.of_hidden
    return device_case(case, CaseOutcome(problem.kind, words))


def _call(
    harness: Harness, loaded: LoadedLab, given: Arrays, layout: Layout, bounds: Bounds
) -> CaseOutcome:
    """Call `run` once; nothing is compared yet but the inputs."""
    child = harness.children["learner"]
    # nothing of it moves while anything is made ready, or looked at
    child.stop()
    put(harness, layout, given)
    try:
        child.ask(harness.next_run(1, numbers_of(loaded, given)), bounds.run_s)
    except Raised as problem:
        return CaseOutcome("raised", str(problem))
    child.stop()
    for slot in layout.read:
        if slot.is_written:
            continue
        if (
            harness.region(slot).read(slot, "learner").tobytes()
            != _values(slot, given).tobytes()
        ):
            return CaseOutcome("input", f"It writes `{slot.name}`, which is an input.")
    return CaseOutcome("", "")


def put(harness: Harness, layout: Layout, given: Arrays) -> None:
    """Have inputs there for the learner, and poison in outputs."""
    for slot in layout.slots:
        if slot.is_read:
            harness.region(slot).write(slot, _values(slot, given), "learner")
        else:
            harness.region(slot).poison(slot, "learner")
    harness.settle()


def _compared(
    harness: Harness,
    python: OwnPython,
    given: Arrays,
    sizes: dict[str, int],
    layout: Layout,
) -> CaseOutcome:
    left = {}
    for slot in layout.written:
        held = harness.region(slot).read(slot, "learner")
        first = None
        if not slot.is_read:
            first = harness.region(slot).first_unwritten(slot, held)
        left[slot.name] = execution.Memory(
            slot.name, held.nbytes, held.tobytes(), first_unwritten=first
        )
    wrong = python.first_wrong(given, sizes, left)
    return (
        CaseOutcome("", "")
        if wrong is None
        else CaseOutcome("wrong", wrong_words(wrong), wrong)
    )


def _values(slot: Slot, given: Arrays) -> NDArray[Any]:
    """Give an input as it lies in memory."""
    held = np.ascontiguousarray(given[slot.name], slot.dtype)
    return held.reshape(slot.shape)


def numbers_of(loaded: LoadedLab, given: Arrays) -> dict[str, int | float]:
    """Give the numbers that `run` gets beside its buffers."""
    return {
        parameter.name: np.asarray(given[parameter.name], parameter.dtype).item()
        for parameter in loaded.lab.parameters
        if parameter.kind == "scalar"
    }
