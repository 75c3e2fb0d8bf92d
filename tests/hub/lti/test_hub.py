"""A hub as `warpbook hub --lti` starts it, and a platform that launches into it."""

from __future__ import annotations

import json
import pwd
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin

import jwt
import pytest
import requests
from cryptography.hazmat.primitives.asymmetric import rsa
from tornado.web import HTTPError

from tests.hub.lti.platform import TEACHER, Member, Platform
from tests.hub.service.class_hub import (
    COURSE,
    GOOD,
    ClassHub,
    Visitor,
    class_hub,
    publish,
)
from tests.programs import wait_for
from warpbook_hub.running.lti_login import account_problem, checked_account
from warpbook_hub.running.plan import HubPlan

GRACE = Member("s-grace", "grace", (TEACHER,))
ADA, BOB = Member("s-ada", "ada"), Member("s-bob", "bob")
PAGE = Path(__file__).parents[3] / "docs/how-to/connect-a-learning-platform.md"
DOCS = PAGE.read_text()


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    platform = Platform([GRACE, ADA, BOB])
    platform.start()
    yield platform
    platform.stop()


@pytest.fixture(scope="module")
def hub(
    platform: Platform, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClassHub]:
    folder = tmp_path_factory.mktemp("hub")
    file = folder / "platform.json"
    file.write_text(json.dumps(platform.description))
    with class_hub(
        folder, "--lti", str(file), base_url="/x/", operator=f"grace={GRACE.subject}"
    ) as running:
        platform.key_set_url = f"{running.service_url}lti/jwks.json"
        yield running


def uid_of(name: str) -> int:
    return pwd.getpwnam(name).pw_uid


def tool_url(hub: ClassHub) -> str:
    """Give the tool URL that the docs say."""
    documented = re.search(r"\| tool URL \| `https://hub.example.org/([^`]+)`", DOCS)
    assert documented
    return f"{hub.url}{documented[1]}"


def begin(
    hub: ClassHub,
    platform: Platform,
    member: Member,
    target: str = "",
    visitor: Visitor | None = None,
) -> tuple[Visitor, Any]:
    """Open the tool at the platform; give what its form would send to the hub."""
    visitor = visitor or Visitor(hub, member.email)
    query = {
        "iss": platform.url,
        "login_hint": member.subject,
        "target_link_uri": target or tool_url(hub),
    }
    answer = visitor.session.get(
        f"{hub.url}hub/lti13/oauth_login?{urlencode(query)}", timeout=60
    )
    assert answer.ok, answer.text
    return visitor, answer.json()


def end(visitor: Visitor, form: Any, token: str = "") -> requests.Response:
    """Send the form."""
    given = {"id_token": token or form["id_token"], "state": form["state"]}
    return visitor.session.post(
        form["to"], data=given, timeout=60, allow_redirects=False
    )


def launched(
    hub: ClassHub, platform: Platform, member: Member, visitor: Visitor | None = None
) -> Visitor:
    visitor, form = begin(hub, platform, member, visitor=visitor)
    answer = end(visitor, form)
    assert answer.status_code == 302, answer.text
    page = urljoin(hub.url, answer.headers["Location"])
    visitor.session.get(page, timeout=60, allow_redirects=False).raise_for_status()
    visitor.page("").raise_for_status()
    return visitor


def test_a_launch_that_is_not_the_platforms_lets_nobody_in(
    hub: ClassHub, platform: Platform
) -> None:
    now_s = int(time.time())
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    changes: list[dict[str, Any]] = [
        {"key": stranger},
        {"iss": "https://evil.example"},
        {"aud": "another-tool"},
        {"nonce": "of another launch"},
        {"exp": now_s - 60},
        {"iat": now_s - 7200},
        {"deployment_id": "another"},
        {"email": ""},
        {"email": "../root"},
        {"sub": "x" * 400},
    ]
    for changed in changes:
        visitor, form = begin(hub, platform, GRACE)
        of = {"nonce": form["nonce"], **changed}
        answer = end(visitor, form, platform.id_token(GRACE, **of))
        assert 400 <= answer.status_code < 500, (changed, answer.text)
        assert not is_in(visitor), changed
    visitor, form = begin(hub, platform, GRACE)
    claims = jwt.decode(form["id_token"], options={"verify_signature": False})
    unsigned = jwt.encode(claims, None, "none", headers={"kid": "p1"})
    assert end(visitor, form, unsigned).status_code == 400
    # the form of one browser, sent by another
    _, form = begin(hub, platform, GRACE)
    assert end(Visitor(hub, "mallory"), form).status_code == 400
    assert not is_in(visitor)


@pytest.mark.parametrize(
    # 0: no answer ever
    ("failure", "status"),
    [(500, 400), ("no JSON", 503), ("[1]", 400), (0, 503)],
)
def test_keys_that_cant_be_had_let_nobody_in(
    hub: ClassHub, platform: Platform, failure: int | str, status: int
) -> None:
    visitor, form = begin(hub, platform, GRACE)
    platform.failures["keys"] = [failure]
    assert end(visitor, form).status_code == status
    assert not is_in(visitor)


@pytest.mark.parametrize("name", ["root", "daemon", "nobody", "no-such-account"])
def test_nobodys_server_runs_as_the_system(name: str, tmp_path: Path) -> None:
    with pytest.raises(HTTPError):
        checked_account(system_plan(tmp_path), name)


@pytest.mark.parametrize(
    ("uid", "groups", "words"),
    [
        (1234, {"ada", "users"}, ""),
        (999, {"ada"}, "of the system"),
        (60_000, {"ada"}, "of the system"),
        (1234, {"ada", "docker"}, "runs this machine"),
        (1234, {"sudo"}, "runs this machine"),
        (uid_of("daemon"), {"daemon"}, "of the hub"),
        (uid_of("games"), {"games"}, "of the hub"),
    ],
)
def test_only_accounts_of_people_without_rights_over_the_machine_log_in(
    uid: int, groups: set[str], words: str, tmp_path: Path
) -> None:
    problem = account_problem(system_plan(tmp_path), uid, groups)
    assert words in problem and bool(words) == bool(problem)


def test_the_log_in_page_says_where_to_begin(hub: ClassHub) -> None:
    page = requests.get(f"{hub.url}hub/login", timeout=60).text
    assert "Open the course from your learning platform." in page
    assert 'type="password"' not in page


def test_only_the_hub_tells_the_service_of_launches(hub: ClassHub) -> None:
    for token in ("", "token wrong"):
        answer = requests.post(
            f"{hub.service_url}lti/launch",
            data=b"{}",
            headers={"Authorization": token},
            timeout=60,
        )
        assert answer.status_code == 403


def test_from_a_launch_to_a_grade_and_a_kill_between(
    hub: ClassHub, platform: Platform
) -> None:
    # nobody is of the course before its instructor has opened it from there
    visitor, form = begin(hub, platform, BOB)
    answer = end(visitor, form)
    assert answer.status_code == 403 and "not of the course" in answer.text
    # a key that the platform replaced is taken at once
    platform.replace_key()
    grace = launched(hub, platform, GRACE)
    lab = publish(grace, int(time.time() * 1000))
    ada = launched(hub, platform, ADA)
    course = f"courses/{COURSE}"
    assert ada.page(f"{course}/platform").status_code == 403
    platform.is_silent = True
    ada.done(f"{course}/labs/{lab}/submissions", {"source": GOOD.read_text()})
    wait_for("the score", lambda: platform.scores or None, 120)
    # the platform has it, and the service does not know
    hub.kill("warpbook_hub.service")
    platform.is_silent = False

    def scores() -> dict[str, Any] | None:
        try:
            answer = grace.get(f"{course}/platform/scores")
        except requests.RequestException:
            return None
        scores_sent: dict[str, Any] | None = answer.json() if answer.ok else None
        return scores_sent if scores_sent and scores_sent["sent"] == 1 else None

    seen = wait_for("the row", scores, 120)
    assert (seen["waiting"], seen["failed"]) == (0, 0)
    (taken,) = platform.scores.values()
    assert [score["scoreGiven"] for score in taken] == [10]
    page = grace.page(f"{course}/platform").text
    assert "GPUs &lt;b&gt;101&lt;/b&gt;" in page and "<b>101" not in page
    # bob, and ada where the roster was read before her launch
    assert re.search(r"2 learners: [12] added", page)

    # of who left there a new mark can't be sent, until they are back
    platform.members.remove(ADA)
    body = {"points": 4, "reason": "copied"}
    grace.done(f"{course}/labs/{lab}/people/{person(grace, 'ada')}/points", body)

    def refused() -> str | None:
        page = grace.page(f"{course}/platform").text
        return page if "0 sent, 0 waiting, 1 failed" in page else None

    page = wait_for("the refusal", refused)
    assert "422" in page and "no such user &lt;i&gt;s-ada" in page
    platform.members.append(ADA)
    assert grace.done(f"{course}/platform/scores") == {"scores": 1}
    wait_for("the score", scores)
    assert platform.last("s-ada")["scoreGiven"] == 4

    key = hub.folder / "course" / "lti_key.pem"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    logs = hub.logs()
    secrets = [*platform.tokens, form["id_token"], key.read_text().split("\n")[1]]
    assert not [secret for secret in secrets if secret in logs]


@pytest.mark.parametrize("path", ["", "hub/lti13/oauth_callback", "hub/x/../lti13/a"])
def test_a_launch_ends_on_a_page(hub: ClassHub, platform: Platform, path: str) -> None:
    target = f"{hub.url}{path}" if path else ""
    visitor, form = begin(hub, platform, GRACE, target)
    answer = end(visitor, form)
    assert answer.status_code == 302, answer.text
    page = visitor.session.get(
        urljoin(hub.url, answer.headers["Location"]), timeout=60, allow_redirects=False
    )
    assert page.status_code in (200, 302), page.text


def test_the_next_one_at_a_browser_is_not_taken_for_the_one_before(
    hub: ClassHub, platform: Platform
) -> None:
    course = f"courses/{COURSE}"
    visitor = launched(hub, platform, GRACE)
    assert visitor.page(f"{course}/platform").status_code == 200
    launched(hub, platform, ADA, visitor)
    assert visitor.page(f"{course}/platform").status_code == 403


@pytest.mark.parametrize(
    "url",
    [
        *("//evil.example", "/\\evil.example", "https://evil.example", "javascript:1"),
        *("https:///evil.example/", "https://[x", "https://a@evil.example/", "https:"),
    ],
)
def test_a_launch_leads_nowhere_else(hub: ClassHub, url: str) -> None:
    given = urlencode({"next": url})
    answer = requests.get(
        f"{hub.service_url}lti/enter?{given}", timeout=60, allow_redirects=False
    )
    assert answer.headers["Location"] == "/x/services/warpbook/"


def person(grace: Visitor, name: str) -> str:
    page = grace.page(f"courses/{COURSE}/people").text
    match = re.search(rf'people/([0-9a-f]+)">[^<]*</a></td><td><code>{name}<', page)
    assert match, page
    return match[1]


def system_plan(folder: Path) -> HubPlan:
    return HubPlan(
        *(str(folder), "system", "127.0.0.1", 8000, "/", COURSE, "GPUs"),
        *(("grace",), ("node", "proxy"), ("grace",), "daemon", "games"),
    )


def is_in(visitor: Visitor) -> bool:
    answer = visitor.session.get(
        f"{visitor.hub.url}hub/home", timeout=60, allow_redirects=False
    )
    return answer.status_code == 200


def test_a_form_is_taken_once(hub: ClassHub, platform: Platform) -> None:
    visitor, form = begin(hub, platform, GRACE)
    assert end(visitor, form).status_code == 302
    assert end(visitor, form).status_code == 400
