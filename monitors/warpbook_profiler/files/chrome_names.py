"""What names tell: of kernels and copies, and of events that have no category.

Such are those of XLA and torch.autograd.profiler: process and thread tell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from warpbook_profiler.events.columns import (
    MAX_NAME_LENGTH,
    NONE,
    Category,
    Int8s,
    Int32s,
    Int64s,
    groups,
    rows_by,
)

_DEVICE = re.compile(
    r"/device:(?!CPU)\w+:(\d{1,4})\b|GPU ?(\d{1,4})\b|(?!CPU)\w+ functions|"
    r"Ascend Hardware"
)
_HOST = re.compile(r"/host:|CPU ")
#: the threads of a device that hold its work; XLA's other ones repeat it
_WORK = ("Stream", "XLA Ops", "")
_Rules = tuple[tuple[re.Pattern[str], Category], ...]
_ON_DEVICE: _Rules = (
    (re.compile(r"(?i)memcpy|copy(Host|Device)"), Category.COPY),
    (re.compile(r"(?i)memset"), Category.MEMSET),
    (re.compile(""), Category.KERNEL),
)
_CALLS: _Rules = ((re.compile(r"(cuda|cu|hip|ur|ze|acl)[A-Z]\w*$"), Category.API),)
_ON_HOST: _Rules = (
    *_CALLS,
    (re.compile(r"\$"), Category.PYTHON),
    (re.compile(""), Category.OPERATOR),
)
#: of a device's queue: it does nothing meanwhile
_WAITS = re.compile(r"event_(wait|record)$")
#: a file of more processes is nobody's
_MOST_PROCESSES = 1000
#: what compilers and drivers add to a kernel's name
_DECORATION = re.compile(r"(\.kd|\s*\[clone [^\]]*\])+$")
#: a copy as XLA and Intel name it, M for the host's memory
_COPY = re.compile(r"Memcpy ?([HMD])2([HMD])\b")
_SIDES = {"H": "Host", "M": "Host", "D": "Device"}


def placed(
    calls: Mapping[str, Any],
    names: Sequence[str],
    labels: Mapping[tuple[int, int], str],
) -> tuple[Int8s, Int64s]:
    """Return each event's category and device; what is of no use stays OTHER.

    Args:
        calls: by name, a column of events.
        names: those of events.
        labels: the names of a process, whose thread is NONE, and of its threads.
    """
    category, device = calls["category"], calls["device"]
    process, thread, name = calls["process"], calls["thread"], calls["name"]
    rows = np.flatnonzero(category == Category.OTHER)
    waits = np.array([bool(_WAITS.match(text)) for text in names] or [False])
    category = np.where(waits[name], Category.OTHER, category).astype(np.int8)
    if len(rows):
        device = device.copy()
    for of_process in rows_by(process[rows])[:_MOST_PROCESSES]:
        mine = rows[of_process]
        number = int(process[mine[0]])
        label = labels.get((number, NONE), "")
        on_device = _DEVICE.match(label)
        if on_device:
            lanes = {
                at: labels.get((number, at), "") for at in set(thread[mine].tolist())
            }
            work = next(
                word for word in _WORK if any(word in text for text in lanes.values())
            )
            mine = mine[[work in lanes[at] for at in thread[mine].tolist()]]
            device[mine] = int(on_device[1] or on_device[2] or 0)
            rules = _ON_DEVICE
        else:
            rules = _ON_HOST if _HOST.match(label) else _CALLS
        category[mine] = _by_name(name[mine], names, rules)
        if rules is _CALLS:
            # of a process without a name, what shares an id with calls
            mine = mine[
                (category[mine] == Category.OTHER) & (calls["correlation"][mine] > 0)
            ]
            category[mine] = _by_name(name[mine], names, _ON_DEVICE)
    return category, device


def _by_name(name: Int32s, names: Sequence[str], rules: _Rules) -> Int8s:
    first, group = groups(name)
    found = [
        next((kind for rule, kind in rules if rule.match(names[at])), Category.OTHER)
        for at in name[first].tolist()
    ]
    return np.array(found, np.int8)[group]


def plain(name: str) -> str:
    """Take a name without what was added to it, and any copy's as CUPTI's."""
    name = name[:MAX_NAME_LENGTH]
    copy = _COPY.match(name)
    if copy:
        source, target = (_SIDES[side] for side in copy.groups())
        return f"Memcpy {source[0]}to{target[0]} ({source} -> {target})"
    return _DECORATION.sub("", name)
