"""What a forge runs and asks: every command it names is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0][
    "hooks"
]


def recipe(target: str) -> str:
    """What a target of the Makefile runs, with that of those it needs."""
    match = re.search(rf"^{target}:([^#\n]*).*\n((?:\t.*\n?)*)", MAKEFILE, re.MULTILINE)
    assert match, f"no target {target}"
    needed = "".join(recipe(name) for name in match[1].split())
    return needed + match[2]


def steps(workflow: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_what_a_developer_runs(workflow: Path) -> None:
    commands = [step["run"] for step in steps(workflow) if "run" in step]
    assert commands
    for command in commands:
        program, *words = shlex.split(command)
        if program == "make":
            recipe(words[0])
        else:
            # of the clone, or of the environment that a target before has made
            assert program == ".venv/bin/python" or (ROOT / program).is_file(), program


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_can_change_nothing(workflow: Path) -> None:
    """A pull request of anybody runs with a token: it reads, and is kept nowhere."""
    text = yaml.safe_load(workflow.read_text())
    assert text["permissions"] == {"contents": "read"}
    # YAML 1.1 reads the key `on` as true
    assert "pull_request_target" not in text[True]
    for step in steps(workflow):
        if step.get("uses", "").startswith("actions/checkout"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_hooks_before_a_commit_are_part_of_the_checks(hook: dict[str, Any]) -> None:
    if hook["id"] == "prettier":
        # `make check` runs it by `jlpm lint`
        assert "prettier --check" in hook["entry"]
        return
    program = next(
        word for word in hook["entry"].split() if word.startswith(".venv/bin/")
    )
    name = program.removeprefix(".venv/bin/")
    assert f"$(BIN)/{name} " in recipe("check") or f"$(BIN)/{name}\n" in recipe("check")


def test_a_weakness_is_not_asked_for_in_public() -> None:
    assert "SECURITY.md" in (ROOT / ".github/ISSUE_TEMPLATE/bug.yml").read_text()
    assert "Report a vulnerability" in (ROOT / "SECURITY.md").read_text()
