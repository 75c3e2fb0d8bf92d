"""The rules in force: those built in, as a person tuned them, and the person's own."""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from warpbook_monitors import toml_text
from warpbook_monitors.alerts.built_in import BuiltIn
from warpbook_monitors.alerts.own import OwnRule
from warpbook_monitors.alerts.rule import Rule
from warpbook_monitors.errors import RulesError

#: in Jupyter's folder of configuration
FILE_NAME = "warpbook-alerts.toml"


class Rules(Struct, frozen=True, forbid_unknown_fields=True):
    """A rules file: TOML with `always`, `[built_in.NAME]` and `[own.NAME]`."""

    #: read the GPUs for the rules' sake even while no page is open
    always: bool = False
    built_in: BuiltIn = BuiltIn()
    own: dict[str, OwnRule] = {}

    def __post_init__(self) -> None:
        """Refuse names that can't be told apart.

        Raises:
            ValueError: an own rule has the name of a built-in one, or none.
        """
        for name in self.own:
            if name in BuiltIn.__struct_fields__:
                raise ValueError(
                    f"`own.{name}` has the name of a built-in rule; change that rule "
                    f"as `built_in.{name}`, or choose another name"
                )
            if not name.isidentifier() or keyword.iskeyword(name) or len(name) > 64:
                raise ValueError(
                    f"`own.{name[:64]}`: a name has letters, digits and underscores"
                )

    def enabled(self) -> Iterator[tuple[str, Rule]]:
        for name in BuiltIn.__struct_fields__:
            rule: Rule = getattr(self.built_in, name)
            if rule.enabled:
                yield name, rule
        for name, own in self.own.items():
            if own.enabled:
                yield name, own


def read_rules(path: Path) -> Rules:
    """Read a rules file; one that is not there changes nothing.

    Raises:
        RulesError: it can't be read, is no TOML, or says what no rule knows.
    """
    try:
        with path.open("rb") as file:
            return parse_rules(file.read(toml_text.MOST_BYTES + 1), path)
    except FileNotFoundError:
        return Rules()
    except OSError as error:
        raise RulesError(path, error.strerror or str(error)) from error


def parse_rules(text: bytes, path: Path) -> Rules:
    """Check what a rules file says; `path` is named where it is refused.

    Raises:
        RulesError: it is no TOML, or says what no rule knows.
    """
    try:
        written = toml_text.decode(text, dict[str, Any])
        # one by one: the error of a dictionary's value would not name its key
        owns = written.get("own")
        for name, own in owns.items() if isinstance(owns, dict) else ():
            _check_own(name, own)
        return msgspec.convert(written, Rules)
    except (msgspec.MsgspecError, ValueError) as error:
        # each names the place: the line, or the key
        raise RulesError(path, str(error)) from error


def _check_own(name: str, own: object) -> None:
    try:
        msgspec.convert(own, OwnRule)
    except msgspec.ValidationError as error:
        where = str(error).replace("`$.", f"`$.own.{name}.")
        named = where if f"own.{name}" in where else f"{where} - at `$.own.{name}`"
        raise msgspec.ValidationError(named) from error
