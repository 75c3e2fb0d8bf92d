"""How cuDNN is let choose: its search for algorithms, and the layout."""

from __future__ import annotations

import re

from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, at_line, percent
from warpbook_profiler.facts.kernels import uses_tensor_cores

_CONVERTS = re.compile(r"nchwToNhwc|nhwcToNchw")
_LAST = re.compile(r"nhwc", re.I)
_CONVOLVES = re.compile(r"conv|fprop|dgrad|wgrad", re.I)
_SETTING = "torch.backends.cudnn.benchmark"
_NONE = "Nothing convolves in this window."


def cudnn_benchmark(facts: Facts) -> Judgement:
    """Tell whether cuDNN measures which algorithm is fastest."""
    if not facts.has_convolutions:
        return Judgement("not applicable", _NONE)
    state = facts.process.cudnn_benchmark
    within = facts.code.keyword("benchmark", "flags")
    value, line = facts.code.assigned("cudnn.benchmark") or within or (None, None)
    if within is not None and within[0] is True:
        # the process has its own setting again once that block has ended
        state, (value, line) = None, within
    if state is None and value is None:
        if not facts.code.is_known:
            return Judgement(
                "unknown",
                "A trace does not show the setting.",
                "Give the code: warpbook advise TRACE --source FILE.",
            )
        evidence = f"The code does not set {_SETTING}, which is off unless set."
    elif state is not None:
        evidence = f"{_SETTING} is {state} in the process that ran it."
        value = state
    else:
        evidence = f"The code sets {_SETTING} to {value}{at_line(line)}."
    if value:
        return Judgement("yes", evidence)
    return Judgement(
        "no",
        evidence,
        f"Set {_SETTING} = True if the sizes of the input stay the same; each new size "
        "is measured once. What it gives is not known before it is tried.",
    )


def channels_last(facts: Facts) -> Judgement:
    """Tell whether convolutions find the layout that tensor cores read."""
    if not facts.has_convolutions:
        return Judgement("not applicable", _NONE)
    advised = facts.by_change("channels-last")
    if advised is not None:
        return advised
    rows = facts.profile.kernels
    converting = sum(row.share_ratio for row in rows if _CONVERTS.search(row.name))
    on_tensor_cores = [
        row
        for row in rows
        if _CONVOLVES.search(row.name) and uses_tensor_cores(row.name)
    ]
    if not on_tensor_cores:
        return Judgement(
            "not applicable",
            "No convolution runs on tensor cores, which are what reads channels last.",
        )
    if converting:
        return facts.without_gain(
            f"Copies between the layouts take {percent(converting)} of the kernels' "
            "time."
        )
    if any(_LAST.search(row.name) for row in on_tensor_cores):
        line = facts.code.mention("channels_last")
        by = f" channels_last is in the code{at_line(line)}." if line else ""
        return Judgement(
            "yes",
            "Convolutions read channels last, and nothing is copied to another layout."
            f"{by}",
        )
    return facts.without_gain("No kernel copies between the layouts.")
