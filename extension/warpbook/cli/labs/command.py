"""`warpbook labs`: exercises, opened, checked and handed in on a terminal."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from warpbook_labs.errors import LabError
from warpbook_labs.lab.languages.table import LANGUAGES


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "labs",
        help="learn to write kernels: open, check and submit exercises",
        description="Exercises in CUDA C++, Triton and PyTorch, checked with or "
        "without a GPU. The exit status is 0 if all went well, of `check` and `submit` "
        "only if it passed; 1 if it did not; 2 if there was nothing to check, or "
        "nothing to check it with.",
    )
    parser.set_defaults(run=run, action="list", json=False)
    actions = parser.add_subparsers(metavar="action")

    def action(name: str, help_text: str) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=help_text, description=help_text)
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.set_defaults(action=name)
        return parser

    action("list", "list the labs with your progress")
    quiz = action(
        "quiz",
        "find where to begin by short questions; with answers: name the lab, and why",
    )
    quiz.add_argument(
        "answers", nargs="*", metavar="LETTER", help="of each question, in order"
    )
    quiz.add_argument(
        "--text", default="", metavar="ID", help="the questions of this text instead"
    )
    quiz.add_argument(
        "--only", type=int, metavar="N", help="ask and mark this question alone"
    )
    for name, help_text in (
        ("open", "put a lab's text and its starter, or a text, into your folder"),
        ("check", "check your source against the cases that the lab shows"),
        ("submit", "hand your source in; hidden cases are drawn for it"),
        ("trace", "run your source once more, and record what the GPU does"),
        ("hint", "open one more hint"),
        ("solution", "show the reference and its discussion, after a pass"),
    ):
        command = action(name, help_text)
        command.add_argument("lab", metavar="LAB", help="its id, or its folder")
        if name == "open":
            command.add_argument(
                "--folder",
                type=Path,
                metavar="DIR",
                default=Path(),
                help="where the lab's folder is made (default: here)",
            )
        if name in ("check", "submit"):
            _add_no_gpu(command)
        if name in ("check", "submit", "trace"):
            command.add_argument(
                "file",
                nargs="?",
                type=Path,
                metavar="FILE",
                help="your source (default: where `open` put it)",
            )
        if name == "check":
            command.add_argument(
                "--question",
                action="store_true",
                help="of a lab of functions: print the first question that is answered "
                "wrongly as Python, whole, instead of the card",
            )
        if name == "submit":
            _add_hub(command)
    command = action("regrade", "grade a submission once more; earlier results stay")
    command.add_argument(
        "what",
        metavar="SUBMISSION|LAB",
        help="its number; or a lab, for all of its own",
    )
    command.add_argument(
        "number",
        nargs="?",
        type=int,
        metavar="NUMBER",
        help="of the lab's submissions, this one alone",
    )
    _add_no_gpu(command)
    command = action("part", "write labs for learners, and their solutions apart")
    command.add_argument("learners", type=Path, metavar="LEARNERS", help="is made")
    command.add_argument("vault", type=Path, metavar="VAULT", help="is made")
    command = action("new", "begin a lab of your own from a small one that is complete")
    command.add_argument("lab", metavar="ID", help="such as my-first-lab")
    command.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        default=Path(),
        help="where its folder is made (default: here)",
    )
    command.add_argument(
        "--language",
        choices=list(LANGUAGES),
        default="cuda",
        help="what learners write (default: cuda)",
    )
    command = action("trust", "say that you have looked through somebody's lab")
    command.add_argument("folder", type=Path, metavar="FOLDER", help="of the lab")
    command = action("validate", "check that labs grade fairly")
    command.add_argument(
        "labs", nargs="*", metavar="LAB", help="id or folder (default: every lab)"
    )
    command.add_argument(
        "--mutants",
        action="store_true",
        help="grade right solutions with one mistake each, and list those that pass",
    )
    command.add_argument(
        "--sample",
        type=int,
        metavar="N",
        default=100,
        help="how many mutants of a lab are graded (default: 100)",
    )
    command.add_argument(
        "--equivalent",
        type=int,
        metavar="DRAWS",
        help="with --mutants: grade those listed as right, with so many draws each, "
        "and name those that fail",
    )


def run(options: argparse.Namespace) -> int:
    """Do what was asked; what it takes may not be installed."""
    if options.action == "submit" and options.hub is not None:
        from warpbook.cli.labs.hub import submit_to_hub

        return submit_to_hub(options)
    try:
        if options.action == "list":
            return _listed(options)
        from warpbook.cli.labs import actions as commands
    except ImportError as problem:
        return _failed(
            options,
            f"labs need more than is installed here ({problem}): "
            "pip install 'warpbook[labs]'",
        )
    try:
        return commands.ACTIONS[options.action](options)
    except BrokenPipeError:
        # of the terminal, and no problem of a lab
        raise
    except commands.PROBLEMS as problem:
        return _failed(options, str(problem))


def _add_no_gpu(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--no-gpu",
        action="store_true",
        help="don't use the GPU: nothing runs there, and speed is not graded",
    )


def _add_hub(submit: argparse.ArgumentParser) -> None:
    """Describe how a lab is handed in to a course's hub."""
    submit.add_argument(
        "--hub",
        nargs="?",
        const="",
        metavar="URL",
        help="hand it in to a course's hub; on a server of a hub, to that one",
    )
    submit.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="with your token for the hub (default: WARPBOOK_HUB_TOKEN)",
    )
    submit.add_argument(
        "--course", default="", metavar="ID", help="the course, if several have the lab"
    )
    submit.add_argument(
        "--replace", action="store_true", help="replace the submission that still waits"
    )
    submit.add_argument("--wait", action="store_true", help="wait until it is graded")


def _listed(options: argparse.Namespace) -> int:
    # without loading what grades
    from warpbook.cli.labs.listing import show

    try:
        return show(options)
    except BrokenPipeError:
        raise
    except (LabError, OSError) as problem:
        return _failed(options, str(problem))


def _failed(options: argparse.Namespace, message: str) -> int:
    if options.json:
        sys.stdout.buffer.write(msgspec.json.encode({"error": message}) + b"\n")
    else:
        print(f"warpbook: {message}", file=sys.stderr)
    return 2
