"""Phrases that readers had to translate are retired: CONTRIBUTING has the field's."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
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
#: names that say nothing of what a variable holds
VAGUE = frozenset(("asked", "each", "found", "told"))
VAGUE_WORD = re.compile(rf"\b({'|'.join(sorted(VAGUE))})\b")
#: where a node has the name that it binds
NAMED_BY: dict[type[ast.AST], str] = {
    ast.Name: "id",
    ast.Attribute: "attr",
    ast.arg: "arg",
    ast.alias: "asname",
    ast.FunctionDef: "name",
    ast.AsyncFunctionDef: "name",
    ast.ClassDef: "name",
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.MatchMapping: "rest",
}
#: answers of learners, each as somebody wrote it
ANSWERS = ("/solutions/", "/corpus/sources/")
#: fields of a message: the protocol has their names
FIELDS = {("TimelineBars", "found"), ("TimelineMatches", "found")}
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
    # Python's own format of one has none; in a style sheet it is a length
    bare = re.compile(r"(?<!width:)\{[^{}]*:\.\d+%\}")
    places = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for folder in ("extension", "labs", "monitors")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for match in bare.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not places, "write units.share(ratio)"


def test_variables_are_named_for_what_they_hold() -> None:
    places = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for folder in ("extension", "monitors", "labs", "tools", "benchmarks", "tests")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not any(part in path.as_posix() for part in (*LEFT_OUT, *ANSWERS))
        for line, name in bindings(path.read_text(encoding="utf-8"))
    ]
    assert not places, "name them for what they hold"


def bindings(source: str) -> Iterator[tuple[int, str]]:
    """Give line and name of each vague name that is bound, but for messages' fields."""
    if not VAGUE_WORD.search(source):
        return
    in_class: dict[ast.AST, str] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            in_class |= {
                field.target: node.name
                for field in node.body
                if isinstance(field, ast.AnnAssign)
            }
        name = getattr(node, NAMED_BY.get(type(node), ""), None)
        is_read = isinstance(getattr(node, "ctx", None), ast.Load)
        if name in VAGUE and not is_read and (in_class.get(node), name) not in FIELDS:
            yield node.lineno, name


def test_every_kind_of_binding_is_seen() -> None:
    source = """
from a import b as told
def each(asked, *found): told = found
for each, told in a: pass
[found for found in a]
lambda asked: asked
a.each = (told := 1)
async def found(): pass
class asked: each: int
with a as told: pass
try: a
except a as found: pass
match a:
    case [each, *told]: pass
    case {"a": asked, **found}: pass
class TimelineBars: found: int
"""
    assert len(list(bindings(source))) == 20
