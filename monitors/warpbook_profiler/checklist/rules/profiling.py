"""Whether there is a measurement to decide by."""

from __future__ import annotations

from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts

_DEBUGGING = (
    "no-launch-blocking",
    "no-anomaly-mode",
    "nondeterministic",
    "no-ranges",
)
_AGAIN = (
    "Record some steps after the first ones with torch.profiler, or profile a cell by "
    "%%gpuprof, and ask again."
)


def profile_first(facts: Facts) -> Judgement:
    """Tell whether the profile says what holds the code back."""
    profile = facts.profile
    if profile.completeness.refusal:
        return Judgement("no", profile.completeness.refusal, _AGAIN)
    verdict = profile.verdict
    if verdict is None or verdict.kind == "unknown":
        said = verdict.cause if verdict is not None else "No verdict is possible."
        return Judgement("no", said, _AGAIN)
    return Judgement("yes", f"{verdict.kind}: {verdict.sentence}")


def debug_off(facts: Facts) -> Judgement:
    """Tell whether a setting for debugging slows the code down."""
    advised = facts.by_change(*_DEBUGGING)
    if advised is not None:
        return advised
    if facts.profile.bare is None:
        return facts.without_gain("No such setting is looked for in this trace.")
    return Judgement("yes", "Nothing of such a setting is in the trace.")
