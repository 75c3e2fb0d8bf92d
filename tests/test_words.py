"""Phrases that readers had to translate are retired: CONTRIBUTING has the field's."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = (
    "extension",
    "labs",
    "monitors",
    "frontend/src",
    "tests",
    "benchmarks",
    "docs",
)
ENDINGS = frozenset((".py", ".ts", ".md", ".toml", ".json", ".ipynb", ".html"))
#: what was written in its time stays as it was
LEFT_OUT = (
    "docs/adr/",
    "docs/evidence/",
    "tests/data/",
    "/node_modules/",
    "labextension",
)
#: code within a text
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
#: lengths of a style sheet, and formats of Python
NO_WORDS = re.compile(r"[\w-]+: ?[\d.]+%|\([\d.]+%\)|%%|\{[^{}]*\}")
#: a percentage has a space before its sign
BARE_SHARE = re.compile(r"\d%")
#: a sentence that begins with what is said of its subject: "Told are the GPUs that ..."
INVERTED = re.compile(
    r"(?:^|(?<=[.!?:] ))(?:Told|Refused|Counted|Shown|Measured|Named|Listed|"
    r"Asked|Read|Judged|Wanted|Known|Found|Ignored|Supported|Graded|Checked|"
    r"Not [a-z]+ed|Not known) (?:is|are|was|were)\b",
    re.MULTILINE,
)
#: each row: a retired phrase, and the field's word for it
ROW = re.compile(r"^\| ([^|]+?) \| ([^|]+?) \|$", re.MULTILINE)


def retired() -> list[str]:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("| retired | the field says |")[2].partition("\n\n")[0]
    rows = [row for row in ROW.findall(table) if set(row[0]) != {"-"}]
    return [phrase for phrase, _ in rows]


def sources() -> list[Path]:
    paths = [ROOT / "README.md", ROOT / "SECURITY.md"]
    for folder in FOLDERS:
        paths += [
            path
            for path in sorted((ROOT / folder).rglob("*"))
            if path.suffix in ENDINGS
            and path.is_file()
            and not any(part in path.as_posix() for part in LEFT_OUT)
        ]
    return [path for path in paths if path != Path(__file__)]


def test_the_glossary_names_enough() -> None:
    assert len(retired()) >= 15


def test_retired_phrases_are_gone() -> None:
    phrases = retired()
    places = [
        f"{path.relative_to(ROOT)}:{number}: {phrase}"
        for path in sources()
        for number, line in enumerate(
            path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1
        )
        for phrase in phrases
        if phrase in line
    ]
    assert not places


def test_a_percentage_has_a_space_before_its_sign() -> None:
    places = [
        f"{place}: {text[max(match.start() - 30, 0) : match.end()]!r}"
        for place, text in read_by_people()
        for match in BARE_SHARE.finditer(text)
    ]
    assert not places, "write 98 %, in code units.share(ratio)"


def test_a_sentence_begins_with_its_subject() -> None:
    places = [
        f"{place}: {text[match.start() : match.end() + 30]!r}"
        for place, text in read_by_people()
        for match in INVERTED.finditer(text)
    ]
    assert not places, "write 'The GPUs that ... are listed'"


def test_shares_are_written_by_one_function() -> None:
    # Python's own format of one has no space; in a style sheet it is a length
    bare = re.compile(r"(?<!width:)\{[^{}]*:\.\d+%\}")
    places = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for folder in ("extension", "labs", "monitors")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for match in bare.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not places, "write units.share(ratio)"


@cache
def read_by_people() -> list[tuple[str, str]]:
    """Give the documents without their code, and the messages of the packages."""
    texts = []
    for path in sources():
        place = str(path.relative_to(ROOT))
        if path.suffix == ".md":
            texts.append((place, CODE.sub("", path.read_text(encoding="utf-8"))))
        elif path.suffix == ".py" and not place.startswith(("tests", "benchmarks")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                # one word is a key or a name
                if isinstance(node, ast.Constant) and " " in str(node.value):
                    text = NO_WORDS.sub("", CODE.sub("", str(node.value)))
                    texts.append((f"{place}:{node.lineno}", text))
    return texts
