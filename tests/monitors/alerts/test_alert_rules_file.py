"""The rules file: what it changes, rules of one's own, and how it is refused."""

from __future__ import annotations

import pytest

from tests.monitors.alerts.alert_machine import Machine, gpu, hot
from warpbook_monitors.alerts.rules import Rules, read_rules
from warpbook_monitors.errors import RulesError


@pytest.fixture
def rules_file(tmp_path):
    def write(text: str):
        path = tmp_path / "rules.toml"
        path.write_text(text)
        return path

    return write


def test_a_rules_file_tunes_and_switches_off(rules_file) -> None:
    rules = read_rules(
        rules_file(
            "always = true\n[built_in.temperature]\nabove_celsius = 50\nfor_s = 0\n"
            'severity = "fault"\n[built_in.memory_full]\nenabled = false\n'
        )
    )
    assert rules.always
    machine = Machine(rules=rules)
    (alert,) = machine.second({**hot(51), "memory_used_bytes": 99})
    assert (alert.rule, alert.severity) == ("temperature", "fault")
    # a rule that is switched off leaves nothing standing
    machine.rules = read_rules(rules_file("[built_in.temperature]\nenabled = false\n"))
    assert machine.second(hot(99)) == ()


def test_a_rule_of_ones_own_has_thresholds_where_it_begins_and_ends(rules_file) -> None:
    text = (
        '[own.lazy]\nmetric = "sm_active_ratio"\nbelow = 0.2\nclear = 0.4\nfor_s = 2\n'
        'clear_s = 0\ntitle = "Lazy"\ntext = "Wake it."\ndevice = "gpu:1"\n'
    )
    machine = Machine(gpu(0), gpu(1), rules=read_rules(rules_file(text)))
    lazy, more, busy = ({"sm_active_ratio": ratio} for ratio in (0.1, 0.3, 0.5))
    assert machine.seconds(2, lazy, lazy) == ()
    (alert,) = machine.second(lazy, lazy)
    assert (alert.title, alert.device, alert.severity) == (
        "GPU 1: Lazy",
        "gpu:1",
        "warning",
    )
    assert machine.seconds(9, lazy, more) == (alert,)
    assert machine.second(lazy, busy) == ()


def test_a_file_that_is_not_there_changes_nothing(tmp_path) -> None:
    assert read_rules(tmp_path / "none.toml") == Rules()


OWN = '[own.x]\nmetric = "power_watts"\ntitle = "x"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("always = yes", "line 1, column 10"),
        ("[built_in.temperature]\nfors = 3", "`fors` - at `$.built_in.temperature`"),
        ("[built_in.temprature]\n", "`temprature` - at `$.built_in`"),
        ("[built_in.xid]\nfor_s = 'x'", "`$.built_in.xid.for_s`"),
        ("[built_in.xid]\nfor_s = -1", ">= 0.0 - at `$.built_in.xid.for_s`"),
        (OWN, "write either `above` or `below` - at `$.own.x`"),
        (OWN + "above = 1\nclear = 2", "`clear` must not be higher"),
        (OWN + "above = 'hot'", "`$.own.x.above`"),
        (OWN.replace("watts", "wats") + "above = 1", "did you mean power_watts"),
        (OWN.replace("own.x", "own.xid") + "above = 1", "choose another name"),
        (OWN.replace("own.x", "own.'a b'") + "above = 1", "letters, digits"),
        ("own = 3", "`$.own`"),
        ("\xff", "UTF-8"),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_the_place(
    rules_file, text, words
) -> None:
    path = rules_file("")
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(RulesError) as refused:
        read_rules(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert words in str(refused.value)
