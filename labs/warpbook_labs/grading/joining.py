"""What was found without a GPU and on one, joined to one result."""

from __future__ import annotations

import msgspec

from warpbook_labs.lab.spec import Lab
from warpbook_labs.results.check import CheckResult, Status, all_passed, cases_word
from warpbook_labs.results.device import DeviceCase, DeviceResult
from warpbook_labs.results.disclosure import disclosed

#: nothing of it was run, here or there
_NOT_RUN: tuple[Status, ...] = ("compile error", "bad launch rule")
_NO_SPEED: dict[str, Status] = {
    "too slow": "too slow",
    "too noisy to tell": "too noisy to tell",
    "too busy": "too busy",
}


def without_gpu(result: CheckResult, lab: Lab, why: str) -> CheckResult:
    """Say of a result why there is none of the GPU beside it."""
    if result.status in _NOT_RUN:
        return result
    words = ["It was not run on the GPU: " + why]
    if lab.speed is not None:
        words.append("So its speed is not graded.")
    return msgspec.structs.replace(result, not_graded=tuple(words))


def with_lab_note(result: CheckResult, lab: Lab) -> CheckResult:
    """Add what the lab says that no grader judges."""
    note = lab.host.not_graded if lab.host is not None else ""
    if not note or result.status in _NOT_RUN:
        return result
    return msgspec.structs.replace(result, not_graded=(*result.not_graded, note))


def joined(
    result: CheckResult,
    device: DeviceResult,
    lab: Lab,
    is_timed: bool,
    has_veto: bool,
) -> CheckResult:
    """Join what both engines found: a case passes only if both accept it.

    Args:
        result: without a GPU, fit to be told.
        has_veto: whether what was found without a GPU counts although all is right on
            it.
    """
    if result.status in _NOT_RUN:
        return result
    device = disclosed(device)
    failed_there = device.of - device.right
    result = msgspec.structs.replace(
        result,
        device=device,
        right=min(result.right, max(0, result.of - failed_there)),
        not_graded=_not_graded(device, lab, is_timed),
    )
    if failed_there:
        first = next(case for case in device.cases if not case.passed)
        return msgspec.structs.replace(
            result, status="failed", message=_failed(result, device, first)
        )
    if has_veto:
        words = f"{result.message} On the GPU its results are right this time."
        return msgspec.structs.replace(result, message=words)
    if result.status != "passed":
        words = f"Only results are checked, not data races: {result.message}"
        result = msgspec.structs.replace(
            result,
            status="passed",
            right=result.of,
            not_graded=(*result.not_graded, words),
        )
    message = all_passed(device.of, ", on the GPU too")
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


def _failed(result: CheckResult, device: DeviceResult, first: DeviceCase) -> str:
    noun = cases_word(device.of)
    words = f"On the GPU {device.right:,} of {device.of:,} {noun} passed."
    if result.status == "passed":
        return (
            f"{words} The first that failed: {first.about}. {first.message} Without "
            "the GPU, where cases are smaller, no mistake is found."
        )
    return f"{result.message} {words}"


def _not_graded(device: DeviceResult, lab: Lab, is_timed: bool) -> tuple[str, ...]:
    if lab.speed is None:
        return ()
    if not is_timed:
        return ("Speed is graded when you submit.",)
    if device.speed is None:
        return ("Speed is graded once all cases pass.",)
    if device.speed.status == "not graded":
        return (f"Speed is not graded: {device.speed.message}",)
    return ()
