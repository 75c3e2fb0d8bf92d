"""Functions that are called step by step: what comes next depends on the answer.

The lab's `advance` runs here, where no code of the learner's is; the learner's process
gets nothing but the arguments of each step.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from warpbook_labs.engines.answers.jobs import FunctionCall, FunctionResult, Opening
from warpbook_labs.lab.python.questions import Advance, Question, typed
from warpbook_labs.lab.spec import Function
from warpbook_labs.sandbox.kept import KeptProcess, KeptProcessError
from warpbook_labs.sandbox.work import Limits

_CHILD = "warpbook_labs.engines.answers.dialogue_child"
#: steps of one dialogue: a lab whose `advance` comes to no end is bad
_MOST_STEPS = 20_000
#: of one step: an answer, and the words of an error
_MOST_STEP_BYTES = 1 << 17
#: characters that are kept of what all steps of a dialogue print
_MOST_PRINTED = 4_000
_decode = msgspec.msgpack.Decoder(FunctionResult).decode


class Put(Struct, frozen=True):
    """A question with what may be told of it."""

    question: Question
    function: Function
    is_hidden: bool


class EndlessDialogue(Exception):
    """A lab's `advance` asks for more steps than there may be."""


class Dialogues:
    """A learner's module in a process of its own, and what is left of its time."""

    def __init__(self, source: str, call_s: float, limits: Limits) -> None:
        """Keep what is needed; nothing is started before the first dialogue."""
        opening = msgspec.msgpack.encode(Opening(source, call_s))
        bounded = msgspec.structs.replace(limits, output_bytes=_MOST_STEP_BYTES)
        self._process = KeptProcess(_CHILD, opening, bounded)
        #: why there is no time left
        self._late = ""

    def hold(self, put: Put, advance: Advance) -> tuple[FunctionResult, Any, str]:
        """Hold one dialogue, with a module that begins anew.

        Returns:
            The last answer, with its problem if the learner's code has one; the lab's
            state at the end; and what the lab finds wrong, nothing if all is right.

        Raises:
            EndlessDialogue: the lab's own fault.
            TooBusy: the machine has no CPU time for it.
        """
        begun = self._ask(FunctionCall("", ()))
        if begun.problem:
            return begun, None, ""
        printed = begun.printed
        state, arguments, wrong = advance(put.question, None, None)
        for _ in range(_MOST_STEPS):
            if wrong or arguments is None:
                return msgspec.structs.replace(begun, printed=printed), state, wrong
            in_place = tuple(
                arguments[argument.name] for argument in put.function.arguments
            )
            given = self._ask(FunctionCall(put.function.name, in_place))
            printed = f"{printed}{given.printed}"[:_MOST_PRINTED]
            if given.problem:
                return msgspec.structs.replace(given, printed=printed), state, ""
            answer, wrong = typed(put.function, given.data, put.is_hidden)
            if not wrong:
                state, arguments, wrong = advance(put.question, state, answer)
        raise EndlessDialogue(f"a dialogue of more than {_MOST_STEPS:,} steps")

    def _ask(self, call: FunctionCall) -> FunctionResult:
        if self._late:
            return FunctionResult(problem=self._late)
        try:
            request = msgspec.msgpack.encode(call)
            return _decode(self._process.exchange(request))
        except KeptProcessError as problem:
            self._late = str(problem) if problem.is_late else ""
            return FunctionResult(problem=str(problem))
        except (msgspec.DecodeError, RecursionError):
            return FunctionResult(problem="It sent an invalid message.")
