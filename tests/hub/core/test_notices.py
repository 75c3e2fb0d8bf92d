"""Who is told of what, on the page and by mail; a real server takes the mails."""

from __future__ import annotations

import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from sqlalchemy import select, update

from tests.hub.core.course import LAB_DIGEST, ROSTER, START_MS, Classroom, facts
from tests.programs import ROOT, environment, free_port, wait_for
from warpbook.hub_protocol import Hello, JobResult, LeaseName
from warpbook_hub.clock import HubClock
from warpbook_hub.course.courses import add_staff
from warpbook_hub.course.mark_settings import hide_marks
from warpbook_hub.course.operators import name_operators
from warpbook_hub.course.publications import set_rubric
from warpbook_hub.course.roster import import_roster
from warpbook_hub.course.roster_csv import read_roster
from warpbook_hub.database.tables import MAILS, NOTICES, OPERATORS, PUBLICATIONS
from warpbook_hub.errors import BadRequest
from warpbook_hub.keeping.erasure import erase
from warpbook_hub.notices import inbox, notes, outbox, smtp
from warpbook_hub.queue import completion, graders
from warpbook_hub.rules.rubric import Rubric, RubricRow
from warpbook_hub.work.appeals import answer_appeal, appeal, appeals
from warpbook_hub.work.feedback import comment, give_points

DATABASES = ("sqlite", "postgres")
DAY_MS = 86_400_000


def told(room: Classroom, person: str) -> list[str]:
    with room.database.read() as connection:
        return [one.words for one in inbox.notices(connection, person)]


def choose(room: Classroom, person: str, mail: Any, address: str = "") -> None:
    with room.database.write() as connection:
        choice = inbox.NoticeChoice(mail, address)
        inbox.choose(connection, room.now_ms, person, choice)


def mails(room: Classroom, now_ms: int) -> list[outbox.DueMail]:
    with room.database.write() as connection:
        outbox.gather(connection, now_ms)
        return outbox.due(connection, now_ms, 50)


def with_addresses(room: Classroom) -> None:
    lines = ROSTER.decode().replace("section,team", "section,team,email").split()
    rows = [lines[0], *(f"{line},{line[:3]}@class.example" for line in lines[1:])]
    roster = read_roster("\n".join(rows).encode())
    with room.database.write() as connection:
        import_roster(connection, room.now_ms, "hub", "gpu101", roster)


def test_everybody_is_told_of_what_is_theirs(room: Classroom) -> None:
    ada, grace, grader = room.people["ada"], room.instructor, room.grader()
    room.submit("ada")
    order = room.grade(grader, facts("wrong", 1))
    assert told(room, ada) == ["Submission 1 of Vector add was graded."]
    assert told(room, room.people["bob"]) == told(room, grace) == []
    with room.database.write() as connection:
        staff = (connection, room.now_ms, "hub", "gpu101")
        tim = add_staff(*staff, "tim", "assistant", "monday")
        una = add_staff(*staff, "una", "assistant", "tuesday")
        appeal(connection, room.now_ms, ada, order.job, "look again")
    appealed = "ada appeals against the result of submission 1 of Vector add."
    # those who may answer it
    assert told(room, grace) == told(room, tim) == [appealed]
    assert told(room, una) == []
    with room.database.write() as connection:
        decided = (connection, room.now_ms + 1, grace)
        [one] = appeals(connection, "gpu101")
        answer_appeal(*decided, one.id, "dismissed", "it is right")
    words = "Your appeal about submission 1 of Vector add was dismissed."
    assert told(room, ada)[0] == words
    # an erased person leaves nothing in what others were told
    with room.database.write() as connection:
        erase(connection, room.now_ms, "hub", ada, "asked for it")
    assert told(room, grace) == told(room, ada) == []


def test_feedback_is_one_notice_until_it_is_read_and_after_its_release(
    room: Classroom,
) -> None:
    ada, who = room.people["ada"], room.instructor
    work = room.submit("ada").submission
    at = (room.now_ms, who, work)
    words = "There are comments or points on submission 1 of Vector add."
    with room.database.write() as connection:
        hide_marks(connection, room.now_ms, who, [room.lab], True)
        comment(connection, *at, 1, "Say why.")
        comment(connection, *at, 0, "Well done.")
    assert told(room, ada) == []
    with room.database.write() as connection:
        hide_marks(connection, room.now_ms, who, [room.lab], False)
    assert told(room, ada) == [words]
    with room.database.write() as connection:
        inbox.mark_read(connection, room.now_ms, ada, room.now_ms)
        set_rubric(connection, *at[:2], room.lab, Rubric((RubricRow("Style", 4),)))
        give_points(connection, *at, {"Style": 3})
    assert told(room, ada) == [words, words]
    with room.database.read() as connection:
        [first, second] = inbox.notices(connection, ada)
    assert first.path.endswith(f"/submissions/{work}")
    assert [first.is_read, second.is_read].count(False) == 1
    assert told(room, room.people["bob"]) == told(room, who) == []


def park(room: Classroom, grader: str, username: str) -> None:
    room.submit(username, f"// by {username}")
    (order,) = room.lease(grader)
    wrong = JobResult(
        LeaseName(order.job, order.fence), facts(), LAB_DIGEST, "another", 1
    )
    with room.database.write() as connection:
        completion.finish(connection, room.now_ms, grader, wrong)


def test_a_class_that_parks_is_one_notice_until_it_is_read(room: Classroom) -> None:
    grader = room.grader()
    for name in ("ada", "bob"):
        park(room, grader, name)
    (words,) = told(room, room.instructor)
    assert words.startswith("Submissions of Vector add can't be graded")
    assert "it is of another source" in words
    with room.database.write() as connection:
        assert inbox.mark_read(connection, room.now_ms, room.instructor, 10**13) == 1
        assert inbox.unread(connection, "grace") == 0
    park(room, grader, "ada")
    assert len(told(room, room.instructor)) == 2


def test_operators_are_told_once_of_a_grader_that_fell_silent(room: Classroom) -> None:
    grader = room.grader("farm-7")
    with room.database.write() as connection:
        name_operators(connection, room.now_ms, ["opal"])
        operator = connection.execute(select(OPERATORS.c.person)).scalar_one()
        for minutes in (1, 11, 30):
            notes.note_silent_graders(connection, room.now_ms + minutes * 60_000)
    assert told(room, operator) == ["The grader farm-7 does not answer any more."]
    # it came back, and fell silent again
    with room.database.write() as connection:
        later_ms = room.now_ms + DAY_MS
        graders.hello(connection, later_ms, grader, Hello(1, ()))
        notes.note_silent_graders(connection, later_ms + 660_000)
    assert len(told(room, operator)) == 2


def test_a_result_that_is_hidden_is_told_once_it_is_released(room: Classroom) -> None:
    ada = room.people["ada"]
    with_addresses(room)
    choose(room, ada, "once")

    def hide(since_ms: int | None) -> None:
        with room.database.write() as connection:
            connection.execute(update(PUBLICATIONS).values(hidden_ms=since_ms))

    hide(START_MS)
    room.submit("ada")
    room.grade(room.grader())
    assert told(room, ada) == [] and mails(room, room.now_ms) == []
    hide(None)
    assert told(room, ada) == ["Submission 1 of Vector add was graded."]
    (mail,) = mails(room, room.now_ms)
    # nor does a mail that waits tell what was hidden meanwhile
    hide(START_MS)
    # and takes the turn of no other
    with room.database.write() as connection:
        other = (
            connection,
            room.now_ms,
            "hub",
            "gpu101",
            "una",
            "instructor",
            "monday",
        )
        una = add_staff(*other)
        choice = inbox.NoticeChoice("once", "una@dept.example")
        inbox.choose(connection, room.now_ms, una, choice)
    park(room, room.grader("another"), "cyd")
    mails(room, room.now_ms)
    with room.database.read() as connection:
        (first,) = outbox.due(connection, room.now_ms, 1)
    assert first.address == "una@dept.example"
    hide(None)
    assert mail in mails(room, room.now_ms)
    # what was hidden for weeks is mailed once it is released
    hidden = (room.instructor, [room.lab])
    with room.database.write() as connection:
        hide_marks(connection, room.now_ms, *hidden, True)
    room.submit("ada", "// again")
    room.grade(room.grader("third"))
    later_ms = room.now_ms + 20 * DAY_MS
    with room.database.write() as connection:
        hide_marks(connection, later_ms, *hidden, False)
    assert [one.address for one in mails(room, later_ms)].count(mail.address) == 2


def test_each_person_chooses_whether_and_when_mail_comes(room: Classroom) -> None:
    with_addresses(room)
    grader = room.grader()
    choose(room, room.people["bob"], "once")
    choose(room, room.people["cyd"], "off")
    for name in ("ada", "bob", "cyd"):
        room.submit(name, f"// by {name}")
        room.grade(grader)
    room.submit("ada", "// by ada again")
    room.grade(grader)
    # bob's and cyd's are a team's: each of them has two
    assert [mail.address for mail in mails(room, room.now_ms)] == ["bob@class.example"]
    a_day_later = mails(room, room.now_ms + DAY_MS)
    (digest,) = [mail for mail in a_day_later if mail.address == "ada@class.example"]
    assert len(digest.notices) == 2
    choose(room, room.people["ada"], "off")
    later = mails(room, room.now_ms + DAY_MS)
    assert [mail.address for mail in later] == ["bob@class.example"]
    # staff are on no roster, and say where; a learner's address is the roster's
    choose(room, room.instructor, "once", "grace@dept.example")
    park(room, grader, "ada")
    addresses = {mail.address for mail in mails(room, room.now_ms)}
    assert "grace@dept.example" in addresses
    with pytest.raises(BadRequest, match="the roster"):
        choose(room, room.people["ada"], "once", "victim@else.example")
    for hostile in ("a@b, c@d", "a@b\r\nBcc: c@d", "<a@b>", "a b@c"):
        with pytest.raises(BadRequest):
            choose(room, room.instructor, "once", hostile)


def test_a_backup_that_is_put_back_mails_nothing_again(room: Classroom) -> None:
    with_addresses(room)
    choose(room, room.people["ada"], "once")
    grader = room.grader()
    for _ in range(2):
        room.submit("ada", f"// {room.now_ms}")
        room.grade(grader)
        assert mails(room, room.now_ms)
    with room.database.write() as connection:
        outbox.forget(connection)
        assert outbox.counts(connection).failed == 2
    assert mails(room, room.now_ms + DAY_MS) == []
    assert len(told(room, room.people["ada"])) == 2


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_a_day_is_one_mail_in_the_evening_of_the_hub() -> None:
    noon = datetime(2026, 7, 1, 12).astimezone()
    evening = noon.replace(hour=notes.DIGEST_HOUR)
    # the clocks change in between
    march = datetime(2026, 3, 28, 20).astimezone()
    after = datetime(2026, 3, 29, notes.DIGEST_HOUR).astimezone()
    for at, expected in (
        (noon, evening),
        (evening, evening + timedelta(days=1)),
        (march, after),
    ):
        from_ms = notes.mail_from_ms(int(at.timestamp() * 1000), "digest")
        assert from_ms == int(expected.timestamp() * 1000)


class Mailbox:
    """What a mail server of the test's has taken, and what it answers."""

    def __init__(self) -> None:
        self.taken: list[EmailMessage] = []
        self.refusals: list[str] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        if self.refusals:
            return self.refusals.pop(0)
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert [mail["To"]] == envelope.rcpt_tos
        self.taken.append(mail)
        return "250 taken"


def _log_in(_server: Any, _session: Any, _envelope: Any, _how: str, who: Any) -> Any:
    is_right = who == LoginPassword(b"hub", b"of the file")
    return AuthResult(success=is_right, handled=False)


def _certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file, secret = folder / "mail.pem", folder / "mail.key"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file, secret)
    return file, context


@contextmanager
def mail_server(mailbox: Mailbox, **options: Any) -> Iterator[int]:
    port = free_port()
    controller = Controller(mailbox, "localhost", port, **options)
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


def mail(address: str = "ada@class.example") -> EmailMessage:
    notice = inbox.Notice(
        "n1", "gpu101", "GPU", "result", "Übung 1\r\nBcc: x@y", "x", 1, False
    )
    server = smtp.MailServer("localhost", "hub@dept.example")
    return smtp.mail_of(server, "https://hub/", "m1", address, [notice])


@pytest.mark.parametrize("security", ["starttls", "tls"])
@pytest.mark.sqlite
def test_a_mail_goes_encrypted_and_with_the_password_of_the_file(
    tmp_path: Path, security: str
) -> None:
    file, context = _certificate(tmp_path)
    mailbox = Mailbox()
    how: dict[str, Any] = {"ssl_context": context, "auth_require_tls": False}
    if security == "starttls":
        how = {"tls_context": context, "require_starttls": True}
    with mail_server(mailbox, **how, authenticator=_log_in) as port:
        settings = tmp_path / "mail.json"
        text = (
            f'{{"host": "localhost", "port": {port}, "security": "{security}", '
            f'"sender": "hub@dept.example", "user": "hub", '
            f'"password": "of the file", "ca_file": "{file}"}}'
        )
        settings.write_text(text)
        settings.chmod(0o644)
        with pytest.raises(smtp.BadMailServer, match="chmod 600"):
            smtp.read_mail_server(settings)
        settings.chmod(0o600)
        server = smtp.read_mail_server(settings)
        assert smtp.send(server, mail()) == "taken"
        (taken,) = mailbox.taken
        assert taken["Bcc"] is None and "Übung 1" in taken["Subject"]
        assert "https://hub/x" in taken.get_content()
        settings.write_text(text.replace("of the file", "another"))
        with pytest.raises(smtp.NotSent, match="535") as refused:
            smtp.send(smtp.read_mail_server(settings), mail())
        assert not refused.value.is_final
        # its certificate is of nobody whom this machine trusts
        settings.write_text(text.replace(str(file), ""))
        with pytest.raises(smtp.NotSent, match="certificate"):
            smtp.send(smtp.read_mail_server(settings), mail())
    # of a roster with a slip of the pen: the others' mails go on
    for slip in ("ada@", '"', "a@[", "ada@class.example\x85b"):
        with pytest.raises(smtp.NotSent) as refused:
            mail(slip)
        assert refused.value.is_final
    assert len(mailbox.taken) == 1
    settings.write_text('{"host": "mail.example", "sender": "a@b", "security": "none"}')
    with pytest.raises(smtp.BadMailServer, match="of this machine"):
        smtp.read_mail_server(settings)


_ROUNDS = """
import asyncio, sys
from pathlib import Path
from warpbook_hub.notices.smtp import MailServer
from warpbook_hub.service import notice_rounds
from warpbook_hub.service.service import Service
notice_rounds._POLL_S = 0.01
server = MailServer("localhost", "hub@dept.example", int(sys.argv[2]), "none")
rounds = notice_rounds.NoticeRounds(server, "https://hub/")
asyncio.run(rounds.run(Service(Path(sys.argv[1]))))
"""


def test_killed_again_and_again_no_mail_is_lost_or_sent_once_more(
    room: Classroom,
) -> None:
    """At once after the server took one, so that its answer may not be noted."""
    with_addresses(room)
    grader = room.grader()
    for name in ("ada", "bob", "cyd"):
        choose(room, room.people[name], "once")
        room.submit(name, f"// by {name}")
        room.grade(grader)
    with room.database.write() as connection:
        # as if it were now
        now_ms = HubClock().now_ms()
        values = {"made_ms": now_ms, "mail_from_ms": now_ms}
        connection.execute(update(NOTICES).values(**values))
    mailbox = Mailbox()
    mailbox.refusals = ["451 later"]
    sent: dict[str, int] = {}

    def states() -> list[str]:
        with room.database.read() as connection:
            rows = connection.execute(select(MAILS.c.id, MAILS.c.state)).all()
        for row in rows:
            if row.state == "sent":
                sent.setdefault(row.id, sum(row.id in one for one in ids()))
        return [row.state for row in rows]

    def ids() -> list[str]:
        return [str(one["Message-ID"]) for one in mailbox.taken]

    def any_taken() -> bool | None:
        return bool(mailbox.taken) or None

    def any_sent() -> bool | None:
        return "sent" in states() or None

    def all_sent() -> bool | None:
        return set(states()) == {"sent"} or None

    with mail_server(mailbox) as port:
        # before the server's answer came, then with some of them noted
        for is_so in (any_taken, any_sent, all_sent):
            command = [sys.executable, "-c", _ROUNDS]
            command += [str(room.database.path.parent), str(port)]
            process = subprocess.Popen(command, cwd=ROOT, env=environment())
            try:
                wait_for(is_so.__name__, is_so)
            finally:
                process.send_signal(signal.SIGKILL)
                process.wait()
            # what was refused for now waits for its turn
            with room.database.write() as connection:
                connection.execute(update(MAILS).values(not_before_ms=0))
    assert len(states()) == len(set(ids())) == 3
    # what the row says to be sent was never sent again
    assert {name: sum(name in one for one in ids()) for name in sent} == sent
    with room.database.read() as connection:
        assert not connection.execute(
            select(NOTICES.c.id).where(NOTICES.c.mail.is_(None))
        ).all()
    addresses = {str(one["To"]) for one in mailbox.taken}
    assert addresses == {f"{name}@class.example" for name in ("ada", "bob", "cyd")}
