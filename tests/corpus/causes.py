"""What a verdict must say of each kind of mistake, so that its cause is named."""

from __future__ import annotations

import re

#: of each cause: a finding of this kind, or words in the message
CAUSES: dict[str, str] = {
    # of kernels, and of host code on streams
    "race": r"^race\b",
    # of what `cp.async` copies: who reads has not waited for it
    "unfinished copy": r"^unfinished copy\b",
    "uninitialised": r"uninitialised|nobody (has )?(written|wrote)",
    "barrier": r"divergent barrier",
    "shuffle": r"shuffle|inactive|mask of a `_sync`",
    "bounds": r"out of bounds|past the end|before the start",
    "misaligned": r"misaligned|multiple of \d+ bytes",
    "misaligned or bounds": r"misaligned|multiple of \d+ bytes|out of bounds",
    "read-only": r"read-only|is an input",
    "race or endless": r"^race\b|too long|deadlock|longer than|never end",
    "endless": r"too long|deadlock|longer than|never end",
    "launch": r"\bgrid\b|can't be launched|promises the compiler",
    # what the assembler refuses
    "room": r"uses too much",
    # right of its form, and wrong of its numbers
    "result": r"expected",
    # right numbers, and more work than a lab allows
    "traffic": r"Counted: .*(sectors|requests|bank conflicts)",
    "work": r"Counted: ",
    "tensor cores": r"tensor cores.* Counted: ",
    # of host code alone
    "host read too early": r"host read too early",
    "released": r"released too early",
    "stale graph": r"stale graph|replays a graph",
    # of schedules for several GPUs
    "schedule's rule": r"A port has|are enough",
    # of an optimizer on the CPU: what does not fit, and what takes too long
    "offload's rule": r"Adam on the GPU needs",
    "offload's time": r"behind backward; .* ms are enough",
    # of a server's schedules: what it can't do, and what it does too slowly
    "server's rule": r"in iteration \d+: ",
    "server's figures": r"is allowed|asked for|still here|came later",
    # of decisions that a simulation asks for
    "decision's rule": r"in decision \d+: ",
    # of coroutines on ranks: more than a method needs, and nobody to go on
    "ranks' traffic": r"suffice|a bucket may have",
    "ranks that wait": r"waits in \w+ \(line \d+\) for rank",
    "search's loss": r"loss of the kept trial",
}


#: "line 3", "lines 3, 5 and 9", "lines 3 to 7 and 9"
_LINES = re.compile(
    r"\blines? (\d+(?: to \d+)?(?:(?:, | and )\d+(?: to \d+)?)*)", re.IGNORECASE
)
_SPAN = re.compile(r"(\d+)(?: to (\d+))?")


def names_cause(cause: str, words: str) -> bool:
    """Say whether a verdict's words name a cause."""
    return re.search(CAUSES[cause], words, re.IGNORECASE | re.MULTILINE) is not None


def names_line(lines: tuple[int, ...], words: str) -> bool:
    """Say whether a verdict's words name one of the lines."""
    named: set[int] = set()
    for listed in _LINES.findall(words):
        for first, last in _SPAN.findall(listed):
            named.update(range(int(first), int(last or first) + 1))
    return bool(named & set(lines))
