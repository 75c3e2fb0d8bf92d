r"""Formulas of labs' texts as plain text, for what draws no LaTeX.

A formula stands between dollars, as Jupyter takes it: `$n^2$`, or `$$n^2$$` apart.
Code between backticks is left as it is.
"""

from __future__ import annotations

import re

_CODE_OR_MATH = re.compile(
    r"```.*?```|`[^`\n]*`|\$\$(?P<apart>[^$]{1,2000})\$\$|\$(?P<line>[^$`]{1,500})\$",
    re.DOTALL,
)
_FRACTION = re.compile(r"\\frac\{([^{}]*)\}\{([^{}]*)\}")
_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_GROUP = re.compile(r"\{([^{}]*)\}")
_COMMAND = re.compile(r"\\([A-Za-z]+)\s?")
_SIMPLE = re.compile(r"[\w.]+")
_SYMBOLS = {
    "cdot": "· ",
    "times": "× ",
    "oplus": "xor ",
    "le": "≤ ",
    "ge": "≥ ",
    "sum": "sum",
    "log": "log",
    "left": "",
    "right": "",
}


def plain_math(text: str) -> str:
    """Write the formulas of a text without LaTeX."""

    def instead(match: re.Match[str]) -> str:
        formula = match["apart"] or match["line"]
        return match[0] if formula is None else _plain(formula)

    return _CODE_OR_MATH.sub(instead, text)


def _plain(formula: str) -> str:
    words = " ".join(formula.split())
    words = words.replace(r"\,", " ").replace(r"\|", "|")
    # from the innermost outwards, each pass once over what is left
    for _ in range(5):
        words = _TEXT.sub(r"\1", words)
        words = _FRACTION.sub(_fraction, words)
        words = _GROUP.sub(r"\1", words) if r"\frac" not in words else words
    words = _COMMAND.sub(lambda match: _SYMBOLS.get(match[1], match[1]), words)
    return " ".join(words.split())


def _fraction(match: re.Match[str]) -> str:
    return " / ".join(
        part if _SIMPLE.fullmatch(part) else f"({part})"
        for part in (match[1].strip(), match[2].strip())
    )
