"""What each part of `warpbook labs` does."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from warpbook.cli.labs.card import card_lines
from warpbook.cli.labs.mutants import validate_mutants
from warpbook.cli.labs.quiz import quiz
from warpbook.cli.labs.solution import next_sections, solution, target
from warpbook.cli.output import CommandError, print_json
from warpbook_labs.cards.card import card_of, condition_words
from warpbook_labs.compiler import nvrtc
from warpbook_labs.course.authoring import new_lab, part
from warpbook_labs.course.check_progress import told_progress
from warpbook_labs.course.notebook import open_lab
from warpbook_labs.course.progress import Progress
from warpbook_labs.course.reading import open_text, text_folder
from warpbook_labs.course.session import (
    Graded,
    Interrupted,
    check_public,
    find,
    grade,
    regrade,
    submit,
    trust,
)
from warpbook_labs.course.store import Store
from warpbook_labs.errors import (
    BadLab,
    BadQuiz,
    BadSource,
    BadText,
    NotInstalled,
    NotPassed,
    NoTrace,
    StoreError,
    TooBusy,
)
from warpbook_labs.grading.tracing import record
from warpbook_labs.grading.validation import Verdict, validate
from warpbook_labs.lab.files import CATALOGUE, VAULT
from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.lab.loader import load_all
from warpbook_labs.lab.sources import read_source
from warpbook_labs.lab.texts import plain_math
from warpbook_labs.sandbox.work import isolation_words
from warpbook_monitors.plain_text import joined, printable

#: what is told in one line, with exit status 2
PROBLEMS = (
    BadLab,
    BadQuiz,
    BadSource,
    BadText,
    CommandError,
    LookupError,
    NotInstalled,
    NotPassed,
    NoTrace,
    StoreError,
    TooBusy,
    OSError,
)
#: said by `labs list` once; what is less is said with each result
_USUAL = condition_words(isolation_words("namespaces", True))
#: what a shell says of a program that Ctrl-C ended
_INTERRUPTED = 130
#: back to the line's start, and nothing on it
_CLEAR = "\r\x1b[K"


def _open(options: argparse.Namespace) -> int:
    if text_folder(options.lab) is not None:
        return _open_text(options)
    loaded = find(options.lab)
    opened = open_lab(loaded, options.folder / loaded.lab.id)
    source = opened.source
    lab, notebook = loaded.lab, str(opened.notebook)
    named = "" if options.folder == Path() else f" {source}"
    return _answer(
        options,
        {"lab": lab.id, "file": str(source), "notebook": notebook},
        f"{lab.number} {lab.title}",
        "",
        *plain_math(lab.asks).strip().splitlines(),
        "",
        f"Read   {source.with_name('text.md')}",
        f"Write  {source}",
        f"Then   warpbook labs check {options.lab}{named}",
        f"Or     {notebook} in JupyterLab",
    )


def _open_text(options: argparse.Namespace) -> int:
    notebook = open_text(options.lab, options.folder / options.lab)
    return _answer(
        options,
        {"text": options.lab, "notebook": str(notebook)},
        f"Read   {notebook.with_name('text.md')}",
        f"Then   warpbook labs quiz --text {options.lab}",
        f"Or     {notebook} in JupyterLab",
    )


def _check(options: argparse.Namespace) -> int:
    loaded, source = _lab_and_source(options)
    with shown_progress():
        graded = check_public(loaded, source, use_gpu=not options.no_gpu)
    if options.question:
        return _print_question(graded)
    return _print_card(options, graded, source)


def _submit(options: argparse.Namespace) -> int:
    loaded, source = _lab_and_source(options)
    try:
        with shown_progress():
            graded = submit(Store(), loaded, source, use_gpu=not options.no_gpu)
    except Interrupted as problem:
        if options.json:
            print_json({"error": str(problem), "submission": problem.submission})
        else:
            print(f"warpbook: {problem}", file=sys.stderr)
        return _INTERRUPTED
    return _print_card(options, graded, source)


def _trace(options: argparse.Namespace) -> int:
    loaded, source = _lab_and_source(options)
    folder = options.file.parent if options.file else Path(loaded.lab.id)
    trace, telemetry, _ = record(Submission(loaded, source), folder)
    return _answer(
        options,
        {"trace": str(trace), "telemetry": str(telemetry)},
        f"What held it back   warpbook analyze {trace}",
        f"What the GPU did    warpbook up --replay {telemetry}",
    )


def _regrade(options: argparse.Namespace) -> int:
    store, what, use_gpu = Store(), options.what, not options.no_gpu
    if what.isdecimal() and options.number is None:
        cards = [regrade(store, int(what), use_gpu=use_gpu)]
    else:
        loaded = find(what)
        _need_compiler(loaded)
        numbers = store.submissions(loaded.lab.id)
        if options.number is not None:
            numbers = [options.number]
        if not numbers:
            raise LookupError(f"There is no submission for {what}.")
        cards = [grade(store, loaded, number, use_gpu=use_gpu) for number in numbers]
    if options.json:
        print_json({"cards": cards})
    for card in () if options.json else cards:
        kept = store.gradings(card.submission or 0)
        before = kept[-2].result.status if len(kept) > 1 else "not graded"
        result = card.result
        words = f"Submission {card.submission} of {result.lab}: {result.status} "
        print(printable(f"{words}(before: {before}). {result.message}"))
    return 0 if all(card.passed for card in cards) else 1


def _part(options: argparse.Namespace) -> int:
    labs = part(options.learners.absolute(), options.vault.absolute())
    return _answer(
        options,
        {"labs": labs},
        f"{options.learners}: {len(labs)} labs as learners get them",
        f"{options.vault}: what they need not see, for {VAULT}",
    )


def _hint(options: argparse.Namespace) -> int:
    loaded = find(options.lab)
    store, lab, of = Store(), loaded.lab, len(loaded.hints)
    before = store.progress().get(lab.id, Progress()).hints
    opened = store.open_hint(lab.id, of)
    # once all are open, they are told again
    new = loaded.hints[before:opened] or loaded.hints
    lines = []
    for number, hint in enumerate(new, opened - len(new) + 1):
        lines += [f"Hint {number} of {of}", *plain_math(hint).splitlines(), ""]
    answer = {"lab": lab.id, "opened": opened, "of": of, "hints": new}
    return _answer(options, answer, *lines[:-1])


def _new(options: argparse.Namespace) -> int:
    place = new_lab(options.lab, options.folder, options.language)
    trust(place)
    answer = {"lab": options.lab, "folder": str(place)}
    return _answer(options, answer, f"{place}", f"Then: warpbook labs validate {place}")


def _trust(options: argparse.Namespace) -> int:
    folder = options.folder.resolve()
    if not (folder / "lab.toml").is_file():
        raise CommandError(f"{folder}: there is no lab.toml. Name the folder of a lab.")
    trust(folder)
    answer = {"folder": str(folder)}
    return _answer(options, answer, f"{folder} is trusted from now on.")


def _validate(options: argparse.Namespace) -> int:
    if options.mutants:
        return validate_mutants(options)
    if options.equivalent is not None:
        raise CommandError("--equivalent grades mutants: add --mutants.")
    worst, outcomes = 0, []
    if not options.labs:
        # two with the same id or number are told here
        load_all()
    for name in options.labs or [str(folder) for folder in _folders()]:
        problem, verdicts = "", []
        try:
            loaded = find(name)
            _need_compiler(loaded)
            for verdict in validate(loaded):
                verdicts.append(verdict)
                if not options.json:
                    print(joined(_verdict_lines(loaded, verdict)), flush=True)
                worst = max(worst, int(not verdict.ok))
        except BadLab as bad:
            problem, worst = str(bad), 2
            if not options.json:
                print(printable(f"BAD     {problem}"), flush=True)
        outcomes.append({"lab": name, "problem": problem, "verdicts": verdicts})
    if options.json:
        print_json({"ok": not worst, "labs": outcomes})
    return worst


ACTIONS = {
    "open": _open,
    "check": _check,
    "submit": _submit,
    "trace": _trace,
    "quiz": quiz,
    "hint": _hint,
    "solution": solution,
    "regrade": _regrade,
    "part": _part,
    "new": _new,
    "trust": _trust,
    "validate": _validate,
}


def _lab_and_source(options: argparse.Namespace) -> tuple[LoadedLab, str]:
    """Load the lab and read the source; whether there is a compiler is asked first."""
    loaded = find(options.lab)
    _need_compiler(loaded)
    name = loaded.lab.id
    file = options.file or Path(name, language_of(loaded.lab).source_name)
    if options.file is None and not file.exists():
        raise BadSource(
            f"There is no {file} here: `warpbook labs open {name}` puts it there, or "
            "name your file."
        )
    return loaded, read_source(file)


def _need_compiler(loaded: LoadedLab) -> None:
    """Ask for NVRTC before anything is begun that would want it.

    Raises:
        NotInstalled: it is not installed.
    """
    if "NVRTC" in language_of(loaded.lab).needs(loaded.lab):
        nvrtc.version()


def _print_card(options: argparse.Namespace, graded: Graded, source: str) -> int:
    if options.json:
        print_json(graded)
    else:
        card = card_of(
            graded.result,
            source,
            graded.submission,
            number=graded.number,
            left_out=(_USUAL,),
            more=next_sections(options, graded),
        )
        text = joined(card_lines(card))
        # a result knows the lab's id alone, and neither its folder nor the file
        command = "warpbook labs check {} --question".format
        print(text.replace(command(graded.result.lab), command(target(options))))
    return 0 if graded.passed else 1


def _answer(options: argparse.Namespace, answer: object, *lines: str) -> int:
    """Print an answer, as JSON where programs ask for it."""
    if options.json:
        print_json(answer)
    else:
        print(joined(lines))
    return 0


def _print_question(graded: Graded) -> int:
    """Print the first shown question that has a wrong answer, as Python.

    Raises:
        CommandError: there is none.
    """
    case = next((case for case in graded.result.cases if case.question), None)
    if case is None:
        raise CommandError(
            "No question that this lab shows has a wrong answer that could be asked "
            f"again. {graded.result.message}"
        )
    print(joined([f"# {case.about}", *case.question.splitlines()]))
    return 0 if graded.passed else 1


def _folders() -> list[Path]:
    return sorted(file.parent for file in CATALOGUE.glob("*/*/lab.toml"))


def _verdict_lines(loaded: LoadedLab, verdict: Verdict) -> Iterator[str]:
    yield f"{'ok' if verdict.ok else 'WRONG':7} {loaded.lab.id}  {verdict.file}"
    did = "passes" if (verdict.should == "pass") == verdict.ok else "fails"
    yield f"        {did}: {verdict.reason}"
    if verdict.error_share is not None:
        yield f"        largest error: {verdict.error_share:.2g} of the tolerance"


@contextlib.contextmanager
def shown_progress() -> Iterator[None]:
    """Show how many cases are done, and the time taken, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield
        return

    def show(words: str) -> None:
        sys.stderr.write(f"{_CLEAR}{words}")
        sys.stderr.flush()

    try:
        with told_progress(show):
            yield
    finally:
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()
