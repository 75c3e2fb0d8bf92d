"""Calls a learner's Python functions, which can only give back data.

No right answer is in this process, nor anything that judges: whatever the functions
return, or write into the answer in some other way, is judged as data by the parent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import msgspec
import numpy as np

from warpbook_labs.engines.answers.jobs import (
    Call,
    CallResults,
    FunctionCall,
    FunctionResult,
)
from warpbook_labs.lab.texts import at_line
from warpbook_labs.sandbox.learner_code import Printed, load_modules, within, words_of
from warpbook_labs.sandbox.work import Refused

Job = Call

SOURCE_NAME = "answers.py"
_MOST_ANSWER_BYTES = 1 << 16


def prepare() -> None:
    """Load what learners may import, and set the clock, which the jail won't allow."""
    load_modules()


def do(job: Call) -> CallResults | Refused:
    """Load a learner's module and call its functions, one after the other."""
    module = ModuleType("answers")
    printed = Printed()
    encode = plain_encoder()
    try:
        with contextlib.redirect_stdout(printed), within(job.call_s):
            code = compile(job.source, SOURCE_NAME, "exec", dont_inherit=True)
            exec(code, module.__dict__)
    except BaseException as problem:  # noqa: BLE001 - whatever the learner's code does
        line, words = words_of(problem, job.call_s, SOURCE_NAME)
        return Refused(at_line(words, line), line=line or None)
    answers = [answer(module, call, job.call_s, encode) for call in job.calls]
    return CallResults(tuple(answers))


def plain_encoder() -> Callable[[Any], bytes]:
    """Give what writes an answer as msgpack, with numbers of NumPy's as Python's."""
    return msgspec.msgpack.Encoder(enc_hook=_plain).encode


def _plain(answer: object) -> object:
    """Give a number of NumPy's as Python's.

    Raises:
        TypeError: it is none.
    """
    if isinstance(answer, np.generic):
        return answer.item()
    raise TypeError(f"it is of type {type(answer).__qualname__}")


def answer(
    module: ModuleType,
    question: FunctionCall,
    call_s: float,
    encode: Callable[[Any], bytes],
) -> FunctionResult:
    """Call a function of a learner's module; whatever it does comes back as data."""
    printed = Printed()
    try:
        with contextlib.redirect_stdout(printed), within(call_s):
            data = encode(getattr(module, question.function)(*question.arguments))
        if len(data) > _MOST_ANSWER_BYTES:
            words = f"It returned more than {_MOST_ANSWER_BYTES >> 10} KiB."
            return FunctionResult(problem=words, printed=printed.held)
        return FunctionResult(data, printed=printed.held)
    except BaseException as problem:  # noqa: BLE001 - whatever the learner's code does
        line, words = words_of(problem, call_s, SOURCE_NAME)
        return FunctionResult(problem=words, line=line, printed=printed.held)
