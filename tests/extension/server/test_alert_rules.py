"""The rules file as the form changes it, from a real server."""

import json

import pytest
from tornado.httpclient import HTTPClientError

ROUTE = ("warpbook", "api", "v1", "alerts", "rules")
WRITTEN = """\
# ours: agreed on with the admins
[own.warm]
metric = "temperature_celsius"
above = 80  # not 85
title = "Warm"
"""


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(WRITTEN)
    return path


@pytest.fixture
def warpbook_config(rules) -> dict:
    return {"alert_rules": str(rules)}


@pytest.fixture
def ask(jp_fetch):
    async def ask(**change) -> dict:
        sent = (
            {"method": "POST", "body": json.dumps({"version": "", **change})}
            if change
            else {}
        )
        return json.loads((await jp_fetch(*ROUTE, **sent)).body)

    return ask


async def refusal(asking) -> tuple[int, str]:
    with pytest.raises(HTTPClientError) as refused:
        await asking
    return refused.value.code, json.loads(refused.value.response.body)["message"]


async def test_rules_are_added_changed_switched_off_and_taken_out(ask, rules) -> None:
    answer = await ask()
    assert answer["file"] == str(rules) and answer["problem"] == ""
    by_name = {rule["name"]: rule for rule in answer["rules"]}
    assert by_name["warm"]["settings"]["above"] == 80
    assert by_name["memory_full"]["settings"]["above_ratio"] == 0.95
    assert by_name["memory_full"]["written"] == []

    settings = {"metric": "power_watts", "above": 600.0, "title": "<img src=x>"}
    answer = await ask(
        version=answer["version"], name="hungry", is_own=True, settings=settings
    )
    changed = {**by_name["warm"]["settings"], "for_s": 60.0}
    answer = await ask(
        version=answer["version"], name="warm", is_own=True, settings=changed
    )
    off = {**by_name["memory_full"]["settings"], "enabled": False}
    answer = await ask(
        version=answer["version"], name="memory_full", is_own=False, settings=off
    )
    # a person's file stays a person's: comments, and no default that nobody wrote
    text = rules.read_text()
    assert "# ours: agreed on with the admins" in text and "# not 85" in text
    assert "severity" not in text and text.count("for_s") == 1
    assert "[built_in.memory_full]\nenabled = false" in text
    assert "clear_ratio" not in text
    by_name = {rule["name"]: rule for rule in answer["rules"]}
    assert by_name["hungry"]["settings"]["title"] == "<img src=x>"
    assert by_name["memory_full"]["written"] == ["enabled"]

    for name, is_own in (("hungry", True), ("memory_full", False)):
        answer = await ask(version=answer["version"], name=name, is_own=is_own)
    assert "hungry" not in rules.read_text()
    assert "memory_full" not in rules.read_text()


async def test_what_would_be_refused_is_not_written_and_says_what_to_do(
    ask, rules
) -> None:
    version = (await ask())["version"]
    rule = {"metric": "power_wats", "above": 1.0, "title": "T"}
    for name, settings, words in (
        ("hungry", rule, "did you mean power_watts"),
        ("hungry", {**rule, "metric": "power_watts", "below": 2.0}, "either"),
        ("two words", {**rule, "metric": "power_watts"}, "letters, digits"),
        ("hungry", {**rule, "metric": "power_watts", "title": ""}, "title"),
    ):
        change = {"version": version, "name": name, "settings": settings}
        code, message = await refusal(ask(is_own=True, **change))
        assert code == 400 and words in message
    # somebody else has changed it meanwhile
    code, message = await refusal(ask(version="another", name="warm", is_own=True))
    assert code == 409 and "changed meanwhile" in message
    assert rules.read_text() == WRITTEN
    rules.write_text("[own")
    assert "Mend it in an editor" in (await ask())["problem"]
