"""Changes one rule of a rules file; comments and everything else stay as written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AbstractTable

from warpbook_monitors import toml_text
from warpbook_monitors.alerts.built_in import BuiltIn
from warpbook_monitors.alerts.own import OwnRule

#: what a rule may be set to
Setting = bool | int | float | str | None
Settings = Mapping[str, Setting]

_OWN_DEFAULTS: Settings = {
    field.name: field.default
    for field in msgspec.structs.fields(OwnRule)
    if field.default is not msgspec.NODEFAULT
}


def with_rule(text: str, name: str, is_own: bool, settings: Settings | None) -> str:
    """Give a rules file with one rule changed, added, or taken out.

    What it gives has yet to be checked by `parse_rules`.

    Args:
        text: the file as it is; empty if there is none.
        name: of the rule.
        is_own: whether it is a person's own, and not one that is built in.
        settings: all that is to be set; None where a setting is left out. A default
            is not written. None in their place takes an own rule out,
            and puts a built-in one back to its defaults.

    Raises:
        ValueError: it is no TOML, or there is no such built-in rule.
    """
    toml_text.check(text)
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ValueError(str(error)) from error
    if not is_own and name not in BuiltIn.__struct_fields__:
        raise ValueError(f"there is no built-in rule `{name[:64]}`")
    defaults = _OWN_DEFAULTS if is_own else _defaults(name)
    section = _table(document, "own" if is_own else "built_in")
    if settings is None:
        section.pop(name, None)
    else:
        rule = _table(section, name)
        for key, value in settings.items():
            is_default = key in defaults and value == defaults[key]
            if value is None:
                rule.pop(key, None)
            elif key in rule and rule[key] == value:
                continue
            elif is_default:
                rule.pop(key, None)
            else:
                rule[key] = value
        if not rule:
            section.pop(name)
    if not section:
        document.pop("own" if is_own else "built_in")
    return tomlkit.dumps(document)


def _defaults(name: str) -> Settings:
    defaults: Settings = msgspec.to_builtins(getattr(BuiltIn(), name))
    return defaults


def _table(parent: Any, name: str) -> Any:
    """Give a table of another, which is made if it is not there.

    Raises:
        ValueError: something else has its name.
    """
    if name not in parent:
        parent[name] = tomlkit.table(is_super_table=name in ("own", "built_in"))
    table = parent[name]
    if not isinstance(table, AbstractTable) and not isinstance(table, Mapping):
        raise ValueError(f"`{name[:64]}` is not a table")
    return table
