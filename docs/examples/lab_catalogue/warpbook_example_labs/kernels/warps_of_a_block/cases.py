"""Blocks that fill their last warp, and others."""

from warpbook_labs.lab.python.questions import Question


def questions(rng):
    full = 32 * rng.randint(1, 32)
    return [
        Question("warps", {"threads": full}, "full warps"),
        Question("warps", {"threads": full - 31}, "one thread in the last warp"),
    ]


def judge(question, answer):
    right = -(-question.arguments["threads"] // 32)
    return "" if answer == right else f"Returned {answer}; expected {right}."
