"""The rules file as a form sees it: with its defaults, changed one rule at a time."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from warpbook.alert_rules_protocol import AlertRule, AlertRuleChange, AlertRules
from warpbook_monitors import toml_text
from warpbook_monitors.alerts.built_in import BuiltIn
from warpbook_monitors.alerts.rules import Rules, parse_rules
from warpbook_monitors.errors import RulesError

#: of a rules file that can be changed here
MOST_BYTES = 256 * 1024
MOST_OWN = 200


class RulesConflict(Exception):
    """The file is not the one that the change was made for; the message says more."""


def rules_now(path: Path) -> AlertRules:
    """Read the file, and tell each rule as it holds by it."""
    try:
        content = _content(path)
        rules = parse_rules(content, path)
    except RulesError as error:
        problem = f"The rules file is refused: {error.reason}. Mend it in an editor."
        return AlertRules(str(path), "", problem, _rules(Rules(), {}))
    written = toml_text.decode(content, dict[str, Any])
    return AlertRules(
        str(path), _version(content), _problem(path), _rules(rules, written)
    )


def change_rule(path: Path, change: AlertRuleChange) -> AlertRules:
    """Write one rule, and give all as they hold then.

    Raises:
        RulesConflict: the file was changed meanwhile, or can't be changed.
        RulesError: the rule would be refused; the message says what to write.
    """
    content = _content(path)
    if _version(content) != change.version:
        raise RulesConflict(
            "The rules file was changed meanwhile. The rules are shown as they are "
            "now; make your change again."
        )
    # 30 ms, and most servers never need it
    from warpbook_monitors.alerts.rules_edit import with_rule

    try:
        text = with_rule(content.decode(), change.name, change.is_own, change.settings)
    except ValueError as error:
        raise RulesError(path, str(error)) from error
    rules = parse_rules(text.encode(), path)
    if len(rules.own) > MOST_OWN or len(text) > MOST_BYTES:
        raise RulesError(path, f"there may be {MOST_OWN} rules of your own")
    try:
        _replace(path, text.encode())
    except OSError as error:
        raise RulesConflict(
            f"{path} can't be written: {error.strerror or error}."
        ) from error
    return rules_now(path)


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise RulesError(path, error.strerror or str(error)) from error
    if len(content) > MOST_BYTES:
        raise RulesError(path, f"it has more than {MOST_BYTES} bytes")
    return content


def _version(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _problem(path: Path) -> str:
    """Why it can't be changed; the folder is what a replaced file needs."""
    target = path.resolve()
    folder = target.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    may_write = os.access(folder, os.W_OK) and (
        not target.exists() or os.access(target, os.W_OK)
    )
    return "" if may_write else f"You may not write {target}: its owner changes rules."


def _rules(rules: Rules, written: dict[str, Any]) -> tuple[AlertRule, ...]:
    def keys(section: str, name: str) -> tuple[str, ...]:
        return tuple(written.get(section, {}).get(name, {}))

    built_in = [
        AlertRule(name, False, _settings(rules.built_in, name), keys("built_in", name))
        for name in BuiltIn.__struct_fields__
    ]
    own = [
        AlertRule(name, True, msgspec.to_builtins(rule), keys("own", name))
        for name, rule in rules.own.items()
    ]
    return (*own, *built_in)


def _settings(built_in: BuiltIn, name: str) -> dict[str, Any]:
    settings: dict[str, Any] = msgspec.to_builtins(getattr(built_in, name))
    return settings


def _replace(path: Path, content: bytes) -> None:
    """Write the file whole or not at all; a link leads on to the same file."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
