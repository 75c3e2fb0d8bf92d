"""Lines of the learner's file in PTX that LLVM wrote, so that the driver keeps them.

LLVM names each file that code came from, Triton's own library among them, in sections
that may stand once in a program. What was inlined is given to the learner's line that
calls it. No instruction changes.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from warpbook_labs.engines.interpreter.triton.watching import FILE

_FILE = re.compile(r'^\s*\.file\s+(\d+) "([^"\n]*)".*\n', re.M)
_LOCATION = re.compile(
    r"^\s*\.loc\s+(\d+) (\d+) (\d+)"
    r"(?:, function_name [^,\n]+, inlined_at (\d+) (\d+) (\d+))?(.*)\n",
    re.M,
)
#: LLVM of Triton 3.6 says in a comment alone what was inlined where
_COMMENT = re.compile(rf"@\[ {PurePath(FILE).name}:(\d+):(\d+)")
#: LLVM counts the lines of assembly within as if they were the source's
_ASSEMBLY = re.compile(r"// begin inline asm\n.*?// end inline asm\n", re.S)
_DEBUG = re.compile(r"^\s*\.section\s+\.debug_\w+\s*\{[^}]*\}\s*\n", re.M)
#: of the learner's file, in every text
_OWN = "1"
#: ends a text of which some lines are known
OWN_FILE = f'.file\t{_OWN} "{FILE}"\n'
#: functions that call one another, before something is wrong
_DEEPEST = 64

_Location = tuple[str, str, str]


def own_lines_alone(ptx: str) -> str:
    """Leave the lines of the learner's file alone, as those of a file 1."""
    ptx = _ASSEMBLY.sub(_first_location_alone, ptx)
    own = {number for number, name in _FILE.findall(ptx) if name == FILE}
    #: what is inlined within what is inlined follows it
    callers: dict[_Location, _Location] = {}

    def owned(of: re.Match[str]) -> str:
        place = (of[1], of[2], of[3])
        if of[4] is not None:
            callers[place] = (of[4], of[5], of[6])
        for _ in range(_DEEPEST):
            if place[0] in own or place not in callers:
                break
            place = callers[place]
        if place[0] not in own:
            said = _COMMENT.search(of[7])
            if said is None:
                return ""
            place = (_OWN, said[1], said[2])
        return f"\t.loc\t{_OWN} {place[1]} {place[2]}\n"

    return _DEBUG.sub("", _FILE.sub("", _LOCATION.sub(owned, ptx)))


def _first_location_alone(assembly: re.Match[str]) -> str:
    text = assembly[0]
    first = _LOCATION.search(text)
    if first is None:
        return text
    return text[: first.end()] + _LOCATION.sub("", text[first.end() :])
