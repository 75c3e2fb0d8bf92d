"""The questions of a plan lab: drawn from a seed, and the answers judged as data."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pprint import pformat
from textwrap import indent
from typing import Any

import msgspec
from msgspec import Struct

from warpbook_labs.lab.spec import RESULTS, ROWS, Function, Plan

#: of each list: all that fit to be shown, then fewer until all fits
_WHOLE = 1_000
_ITEMS = (16, 8, 4, 3, 2, 1, 0)
#: of a text, for each item that a list may have, and one more
_CHARACTERS_PER_ITEM = 20
_WIDTH = 84
#: of lists in lists, which a learner may return without end
_MOST_DEPTH = 20


def data_words(values: Sequence[Any], most: int) -> tuple[str, bool]:
    """Write values with commas between them; no number is cut.

    Args:
        most: characters, as far as leaving out items can do it.

    Returns:
        The words, and whether all of the data is in them.
    """
    words, items = "", _WHOLE
    for items in (_WHOLE, *_ITEMS):
        words = ", ".join(_written(value, items) for value in values)
        if len(words) <= most:
            break
    return words, items == _WHOLE


def argument_code(name: str, value: Any) -> str:
    """Write plain data as an argument of a call, on lines of its own."""
    text = pformat(value, width=_WIDTH, compact=True, sort_dicts=False)
    return indent(f"# {name}\n{text},", " " * 4)


def _written(value: Any, items: int, depth: int = 0) -> str:
    if depth > _MOST_DEPTH:
        return "..."
    if isinstance(value, dict):
        pairs = [
            f"{key!r}: {_written(inner, items, depth + 1)}"
            for key, inner in list(value.items())[:items]
        ]
        return f"{{{_with_rest(pairs, len(value))}}}"
    if isinstance(value, list | tuple):
        head = [_written(inner, items, depth + 1) for inner in value[:items]]
        return f"[{_with_rest(head, len(value))}]"
    if isinstance(value, str | bytes):
        most = _CHARACTERS_PER_ITEM * (items + 1)
        return f"{value[:most]!r}{'...' if len(value) > most else ''}"
    return repr(value)


def _with_rest(head: list[str], count: int) -> str:
    if len(head) == count:
        return ", ".join(head)
    return ", ".join([*head, f"... {count:,} in all"])


_MOST_QUESTIONS = 200
_MOST_SHOWN = 280
#: of one question, kept with a result
_MOST_CODE = 20_000
#: of an answer that is of another type
_MOST_QUOTED = 60


class Question(Struct, frozen=True):
    """One call of a function that the learner writes."""

    function: str
    #: plain data, by the arguments' names in `lab.toml`
    arguments: dict[str, Any]
    #: what kind of question it is, which learners are told of hidden ones too
    about: str = ""


class BadQuestion(ValueError):
    """A lab's own question is invalid; the message says what is wrong."""


Draw = Callable[[random.Random], "list[Question]"]
#: says in words why an answer, or the state at a dialogue's end, is wrong; or nothing
Judge = Callable[[Question, Any], str]
#: (question, state, answer) -> state, arguments of the next step, why it is wrong: both
#: are None before the first step; where there are no arguments the dialogue is over
Advance = Callable[[Question, Any, Any], tuple[Any, "dict[str, Any] | None", "str"]]


def drawn(plan: Plan, draw: Draw, seed: int) -> list[Question]:
    """Draw questions, and refuse what `lab.toml` does not say.

    Raises:
        BadQuestion: one asks for what is no function or argument of the lab.
    """
    questions = draw(random.Random(seed))
    wanted = {
        function.name: [one.name for one in function.arguments]
        for function in plan.functions
    }
    if not 0 < len(questions) <= _MOST_QUESTIONS:
        raise BadQuestion(
            f"{len(questions)} questions; there must be 1 to {_MOST_QUESTIONS}."
        )
    dialogues = {function.name for function in plan.functions if function.is_dialogue}
    for question in questions:
        names = wanted.get(question.function)
        if question.function in dialogues:
            # what the lab plays is its own; arguments are those of its steps
            continue
        if names is None or set(question.arguments) != set(names):
            call = f"{question.function}({', '.join(question.arguments)})"
            raise BadQuestion(f"{call} is not in lab.toml.")
    missing = set(wanted) - {question.function for question in questions}
    if missing:
        raise BadQuestion(f"{', '.join(sorted(missing))} has no question.")
    return questions


def in_order(function: Function, question: Question) -> tuple[Any, ...]:
    """Give a question's arguments in the order in which they are handed over."""
    return tuple(question.arguments[argument.name] for argument in function.arguments)


def call_words(function: Function, question: Question) -> tuple[str, bool]:
    """Write a question as a call, and tell whether it is whole.

    Of long lists head and length are written.
    """
    given, is_whole = data_words(in_order(function, question), _MOST_SHOWN)
    return f"{function.name}({given})", is_whole


def call_code(function: Function, question: Question) -> str:
    """Write a question as Python that asks it again; nothing of a very long one."""
    names = (argument.name for argument in function.arguments)
    lines = [argument_code(name, question.arguments[name]) for name in names]
    code = "\n".join([f"{function.name}(", *lines, ")"])
    return code if len(code) <= _MOST_CODE else ""


def typed(function: Function, data: bytes, is_hidden: bool = False) -> tuple[Any, str]:
    """Give an answer as the type that was asked for, or say that it is of another.

    Of a hidden question an answer of another type is not quoted: a learner can put the
    question into it.
    """
    try:
        held = msgspec.msgpack.decode(data)
        # a count that went through a division, or NumPy, is one still
        if function.returns == "int" and isinstance(held, float) and held.is_integer():
            held = int(held)
        if function.returns in (ROWS, "dict[str, int]"):
            held = _with_counts(held)
        return msgspec.convert(held, RESULTS[function.returns]), ""
    except (msgspec.DecodeError, RecursionError, TypeError, ValueError):
        kind = _kind(data, is_hidden)
        return None, f"It must return {function.returns}, and returns {kind}."


def _with_counts(held: Any) -> Any:
    """Give what is held with truths and whole floats as whole numbers."""
    if isinstance(held, dict):
        return {name: _with_counts(value) for name, value in held.items()}
    if isinstance(held, list):
        return [_with_counts(one) for one in held]
    is_count = isinstance(held, bool | float) and float(held).is_integer()
    return int(held) if is_count else held


def _kind(data: bytes, is_hidden: bool) -> str:
    try:
        held = msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, RecursionError, TypeError, ValueError):
        return "no such data"
    if held is None:
        return "nothing (None)"
    kind = type(held).__name__
    if is_hidden:
        return kind
    return f"{kind}: {data_words([held], _MOST_QUOTED)[0]}"
