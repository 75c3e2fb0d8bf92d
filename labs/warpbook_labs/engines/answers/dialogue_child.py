"""The process in the jail that answers step by step, with what it keeps between.

    python -m warpbook_labs.engines.answers.dialogue_child LIMITS EMPTY_FOLDER

The first message is an `Opening`, each later one a `FunctionCall`, and all are
answered. One that asks for no function begins the learner's module anew.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from types import ModuleType

import msgspec

from warpbook_labs.engines.answers.calling import (
    SOURCE_NAME,
    answer,
    plain_encoder,
    prepare,
)
from warpbook_labs.engines.answers.jobs import FunctionCall, FunctionResult, Opening
from warpbook_labs.sandbox.confinement import confine
from warpbook_labs.sandbox.learner_code import Printed, within, words_of
from warpbook_labs.sandbox.work import Limits, read_message, write_message

#: a source, or the arguments of a step: what comes in is the grader's
_MOST_REQUEST_BYTES = 32 << 20


def main() -> None:
    """Be given a source, be shut in, and answer until the end."""
    limits = msgspec.json.decode(sys.argv[1], type=Limits)
    # what is printed must not get into the answers
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    prepare()
    encode = plain_encoder()
    confine(limits, Path(sys.argv[2]))
    requests = sys.stdin.buffer
    first = read_message(requests, _MOST_REQUEST_BYTES)
    if first is None:
        return
    opening = msgspec.msgpack.decode(first, type=Opening)
    module = ModuleType("answers")
    while (request := read_message(requests, _MOST_REQUEST_BYTES)) is not None:
        call = msgspec.msgpack.decode(request, type=FunctionCall)
        if call.function:
            given = answer(module, call, opening.call_s, encode)
        else:
            module = ModuleType("answers")
            given = _begun(module, opening)
        write_message(answers, msgspec.msgpack.encode(given))
    os._exit(0)


def _begun(module: ModuleType, opening: Opening) -> FunctionResult:
    try:
        with contextlib.redirect_stdout(Printed()), within(opening.call_s):
            code = compile(opening.source, SOURCE_NAME, "exec", dont_inherit=True)
            exec(code, module.__dict__)
    except BaseException as problem:  # noqa: BLE001 - whatever the learner's code does
        line, words = words_of(problem, opening.call_s, SOURCE_NAME)
        return FunctionResult(problem=words, line=line)
    return FunctionResult()


if __name__ == "__main__":
    main()
