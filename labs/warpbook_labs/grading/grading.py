"""Grades a source without a GPU, and on one at the same time where one is.

Each sees what the other can't: the interpreter, and for host code the simulated GPU,
find races and count work; the GPU has the real order of things, large cases, and the
time. A case passes only if both accept it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import msgspec

from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.compiler.nvrtc import NoCompiler
from warpbook_labs.engines.host.lane import run_on_gpu as run_host
from warpbook_labs.engines.interpreter.checking import check
from warpbook_labs.engines.interpreter.triton.tuning import configured
from warpbook_labs.engines.kernels.lane import NotOnGpu, run_on_gpu
from warpbook_labs.gpu.gpu import NoGpu, find_gpu
from warpbook_labs.lab.loader import LoadedLab
from warpbook_labs.lab.sources import BadSource
from warpbook_labs.results.check import CheckResult, Status
from warpbook_labs.results.device import DeviceCase, DeviceResult
from warpbook_labs.results.disclosure import fit_to_tell
from warpbook_labs.sandbox.limits import Limits

#: languages whose programs a GPU is given
_ON_GPU = ("cuda", "triton", "host")
#: nothing of it was run, here or there
_NOT_RUN: tuple[Status, ...] = ("compile error", "bad launch rule")
_NO_SPEED: dict[str, Status] = {
    "too slow": "too slow",
    "too noisy to tell": "too noisy to tell",
    "too busy": "too busy",
}


def grade_source(
    loaded: LoadedLab,
    source: str,
    cases: Sequence[DrawnCase],
    limits: Limits,
    large: Sequence[DrawnCase] = (),
    is_timed: bool = False,
    use_gpu: bool = True,
) -> CheckResult:
    """Grade a source by all that is here.

    Args:
        loaded: the lab.
        source: the learner's.
        cases: for interpreter and GPU.
        limits: of the processes that compile and interpret.
        large: more cases, for a GPU alone.
        is_timed: whether its speed is graded where that can be.
        use_gpu: whether a GPU may be used.

    Raises:
        NoCompiler: NVRTC, or Triton, is not installed.
        BadLab: the lab's own Python fails.
    """
    lab = loaded.lab
    if lab.language not in _ON_GPU or not use_gpu:
        return check(loaded, source, cases, limits)
    try:
        gpu = find_gpu()
    except NoGpu:
        return check(loaded, source, cases, limits)
    run = run_host if lab.language == "host" else run_on_gpu
    on_gpu = source
    if lab.language == "triton":
        with contextlib.suppress(BadSource):
            # the first configuration, if it has several
            on_gpu = configured(source)[0]
    with ThreadPoolExecutor(1, "warpbook-gpu") as threads:
        asked = threads.submit(
            run, gpu, loaded, on_gpu, [*cases, *large], is_timed, limits
        )
        if lab.language == "host":
            # the processor's time is graded, too, so nothing else may need it
            wait([asked])
        result = check(loaded, source, cases, limits)
        try:
            device = asked.result()
        except (NotOnGpu, NoCompiler) as problem:
            return _without(result, loaded, str(problem))
    if result.status in _NOT_RUN:
        return result
    return _together(result, _fit_to_tell(device), loaded, is_timed)


def _without(result: CheckResult, loaded: LoadedLab, why: str) -> CheckResult:
    if result.status in ("compile error", "bad launch rule"):
        return result
    words = ["It was not run on the GPU: " + why]
    if loaded.lab.speed is not None:
        words.append("So its speed is not graded.")
    return msgspec.structs.replace(result, not_graded=tuple(words))


def _fit_to_tell(device: DeviceResult) -> DeviceResult:
    """Leave out what is not told of hidden cases, as of the interpreter's."""
    return msgspec.structs.replace(device, cases=fit_to_tell(device.cases))


def _together(
    result: CheckResult, device: DeviceResult, loaded: LoadedLab, is_timed: bool
) -> CheckResult:
    """Join what both found: a case passes only if both accept it."""
    failed_there = device.of - device.right
    result = msgspec.structs.replace(
        result,
        device=device,
        right=min(result.right, max(0, result.of - failed_there)),
        not_graded=_not_graded(device, loaded, is_timed),
    )
    if failed_there:
        first = next(each for each in device.cases if not each.passed)
        return msgspec.structs.replace(
            result, status="failed", message=_failed(result, device, first)
        )
    if _has_veto(result, loaded):
        words = f"{result.message} On the GPU its results are right this time."
        return msgspec.structs.replace(result, message=words)
    if result.status != "passed":
        words = f"Data races are not looked for, only results: {result.message}"
        result = msgspec.structs.replace(
            result,
            status="passed",
            right=result.of,
            not_graded=(*result.not_graded, words),
        )
    message = f"All {device.of:,} cases passed, on the GPU too."
    speed = device.speed
    if speed is None:
        return msgspec.structs.replace(result, message=message)
    return msgspec.structs.replace(
        result,
        status=_NO_SPEED.get(speed.status, "passed"),
        message=f"{message} {speed.message}"
        if speed.status != "not graded"
        else message,
    )


def _has_veto(result: CheckResult, loaded: LoadedLab) -> bool:
    """Whether what was found without the GPU counts although all is right there.

    Of kernels a finding does, such as a race, a result that is right by luck alone, and
    work beyond the bounds; what the interpreter does not know, or is too slow for, does
    not. Host code is judged as a program.
    """
    if loaded.lab.language == "host":
        return result.status != "passed"
    return any(
        each.findings or each.is_beyond or each.wrong is not None
        for each in result.cases
        if not each.passed
    )


def _failed(result: CheckResult, device: DeviceResult, first: DeviceCase) -> str:
    words = f"On the GPU {device.right:,} of {device.of:,} cases passed."
    if result.status == "passed":
        return (
            f"{words} The first that failed: {first.about}. {first.message} Without "
            "the GPU, where cases are smaller, no mistake is found."
        )
    return f"{result.message} {words}"


def _not_graded(
    device: DeviceResult, loaded: LoadedLab, is_timed: bool
) -> tuple[str, ...]:
    if loaded.lab.speed is None:
        return ()
    if not is_timed:
        return ("Speed is graded when you submit.",)
    if device.speed is None:
        return ("Speed is graded once all cases pass.",)
    if device.speed.status == "not graded":
        return (f"Speed is not graded: {device.speed.message}",)
    return ()
