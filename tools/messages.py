"""The catalogue of what people read in JupyterLab, and its translations.

    python tools/messages.py [--check]

frontend/messages.mjs finds words that `trans.__()`, `trans._n()` and `mark()` mark in
frontend/src; those of the settings' schema follow JupyterLab's rules. This writes them
into `extension/warpbook/locale/warpbook.pot`, brings each language's `.po` to the same
words, and makes the `.json` that JupyterLab reads. A new language: a folder such as
`fr_FR/LC_MESSAGES` with an empty `warpbook.po`.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.messages import Catalog, Message
from babel.messages.pofile import read_po, write_po
from setup_steps import PATH, ROOT

FRONTEND = ROOT / "frontend"
SCHEMA = FRONTEND / "schema" / "plugin.json"
LOCALE = ROOT / "extension" / "warpbook" / "locale"
TEMPLATE = LOCALE / "warpbook.pot"
#: between a context and its words, in JupyterLab's files
CONTEXT_END = "\x04"
Json = dict[str, "list[str] | dict[str, str]"]


def template() -> Catalog:
    """Collect all words, each with the files where it stands."""
    catalog = Catalog(project="warpbook", fuzzy=False)
    node = shutil.which("node", path=PATH)
    if node is None:
        sys.exit("There is no node: run `make setup`.")
    done = subprocess.run(
        [node, "messages.mjs"], cwd=FRONTEND, check=True, stdout=subprocess.PIPE
    )
    for line in done.stdout.splitlines():
        document = json.loads(line)
        words = (
            (document["words"], document["plural"])
            if document["plural"]
            else document["words"]
        )
        catalog.add(words, locations=[(f"frontend/src/{document['file']}", 0)])
    for context, words in schema_words():
        where = [(SCHEMA.relative_to(ROOT).as_posix(), 0)]
        catalog.add(words, context=context, locations=where)
    return catalog


def schema_words() -> Iterator[tuple[str, str]]:
    """Give what JupyterLab translates of a schema, with its contexts."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    yield "schema", schema["title"]
    yield "schema", schema["description"]
    for setting in schema["properties"].values():
        yield "settings", setting["title"]
        yield "settings", setting["description"]


def translated(file: Path, words: Catalog) -> Catalog:
    """Read a language's file, brought to the words that there are now."""
    with file.open("rb") as source:
        catalog = read_po(source, locale=file.parent.parent.name, domain="warpbook")
    catalog.update(words, no_fuzzy_matching=True)
    catalog.obsolete.clear()
    return catalog


def for_jupyterlab(catalog: Catalog) -> Json:
    """Give what the page loads; words without a translation stay English there."""
    strings_of: Json = {
        "": {
            "domain": "warpbook",
            "language": str(catalog.locale_identifier).replace("_", "-"),
            "plural_forms": catalog.plural_forms,
        }
    }
    for message in catalog:
        strings = parts(message.string)
        if message.id and all(strings):
            context = f"{message.context}{CONTEXT_END}" if message.context else ""
            strings_of[context + parts(message.id)[0]] = list(strings)
    return strings_of


def parts(words: str | tuple[str, ...] | list[str] | None) -> tuple[str, ...]:
    """Give the forms of a message: one, or singular and plural; empty if not known."""
    return tuple(words) if isinstance(words, (tuple, list)) else (words or "",)


def as_text(catalog: Catalog) -> str:
    """Write a catalogue without dates and line numbers, which change by themselves."""
    written = io.BytesIO()
    write_po(written, catalog, omit_header=True, include_lineno=False, width=92)
    header = ['msgid ""', 'msgstr ""', '"Content-Type: text/plain; charset=utf-8\\n"']
    if catalog.locale is not None:
        header.append(f'"Language: {catalog.locale}\\n"')
        header.append(f'"Plural-Forms: {catalog.plural_forms}\\n"')
    return "\n".join(header) + "\n\n" + written.getvalue().decode()


def outputs() -> Iterator[tuple[Path, str]]:
    """Give each file with what it must hold."""
    words = template()
    yield TEMPLATE, as_text(words)
    for file in sorted(LOCALE.glob("*/LC_MESSAGES/warpbook.po")):
        catalog = translated(file, words)
        yield file, as_text(catalog)
        text = json.dumps(for_jupyterlab(catalog), ensure_ascii=False, indent=1)
        yield file.with_suffix(".json"), f"{text}\n"
        lacking = missing(catalog)
        if lacking:
            name = file.parent.parent.name
            print(f"{name}: {len(lacking)} of {len(catalog)} words stay English")


def missing(catalog: Catalog) -> list[Message]:
    """Give the words that a language has not."""
    return [
        message for message in catalog if message.id and not all(parts(message.string))
    ]


def main() -> int:
    """Write the files, or say which are old."""
    parser = argparse.ArgumentParser(description="Collect the words of the frontend.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    old = [
        (file, text)
        for file, text in outputs()
        if not file.exists() or file.read_text(encoding="utf-8") != text
    ]
    if check and old:
        names = ", ".join(str(file.relative_to(ROOT)) for file, _ in old)
        print(f"old: {names}. Run `make messages`.", file=sys.stderr)
        return 1
    for file, text in old:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        print(f"wrote {file.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
