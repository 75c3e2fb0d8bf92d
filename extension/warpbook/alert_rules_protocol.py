"""What the alert rules' form and the server say to each other, typed once."""

from __future__ import annotations

from msgspec import Struct

#: what a rule is set to; None where a setting is left out
Setting = bool | float | str | None


class AlertRule(Struct, frozen=True):
    """One rule as it holds, with all that may be set of it."""

    name: str
    #: a person's own; the others are built in
    is_own: bool
    settings: dict[str, Setting]
    #: what the rules file sets; the rest are defaults
    written: tuple[str, ...] = ()


class AlertRules(Struct, frozen=True):
    """Answer of `GET` and `POST api/v1/alerts/rules`."""

    #: the rules file, which need not be there
    file: str
    #: of its content; who changes it says which one they saw
    version: str
    #: why the file can't be changed here, in words; empty if it can
    problem: str
    rules: tuple[AlertRule, ...] = ()


class AlertRuleChange(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `POST api/v1/alerts/rules`."""

    version: str
    name: str
    is_own: bool
    #: all that is set; None takes the rule out, or puts it back to its defaults
    settings: dict[str, Setting] | None = None
