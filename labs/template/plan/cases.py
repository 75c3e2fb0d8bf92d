"""Questions of the lab, and what is right."""

from __future__ import annotations

import random
from typing import Any

from warpbook_labs.lab.python.questions import Question


def questions(rng: random.Random) -> list[Question]:
    """Draw questions, with nothing but `rng` to choose."""
    threads = 32 * rng.randint(1, 32)
    return [
        question_about(rng.randint(1, 100_000), threads, "any number of elements"),
        # mistakes show where the last block is full, and where it has one thread
        question_about(
            threads * rng.randint(1, 99), threads, "blocks that are all full"
        ),
        question_about(
            threads * rng.randint(1, 99) + 1, threads, "one element too many"
        ),
    ]


def judge(question: Question, answer: Any) -> str:
    """Say why an answer is wrong; nothing if it is right."""
    n, threads = question.arguments["n"], question.arguments["threads"]
    right = -(-n // threads)
    if answer == right:
        return ""
    return f"Returned {answer}; {right} blocks have {right * threads} threads."


def question_about(n: int, threads: int, about: str) -> Question:
    """Ask for a launch, with what kind of question it is."""
    return Question("blocks", {"n": n, "threads": threads}, about)
