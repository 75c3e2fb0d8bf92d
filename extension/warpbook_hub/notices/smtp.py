"""The mail server that an operator names, and how a mail is given to it."""

from __future__ import annotations

import contextlib
import smtplib
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import formatdate
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from warpbook_hub.notices.inbox import Notice, is_address
from warpbook_monitors.plain_text import bounded

#: names, in the environment of the course service, a mail server as JSON
MAIL = "WARPBOOK_HUB_MAIL"
_WAIT_S = 30.0
_MOST_FILE_BYTES = 64 << 10
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
Text = Annotated[str, Meta(min_length=1, max_length=300)]


class BadMailServer(Exception):
    """The file that names the mail server can't be used; the message says why."""


class NotSent(Exception):
    """The server did not take a mail; the message is its answer."""

    def __init__(self, answer: str, is_final: bool) -> None:
        super().__init__(answer)
        #: trying again is of no use
        self.is_final = is_final


class MailServer(Struct, frozen=True, forbid_unknown_fields=True):
    """A mail server, as the operator's file names it."""

    host: Text
    #: of all mails
    sender: Text
    port: Annotated[int, Meta(ge=1, le=65_535)] = 587
    #: starttls: on a plain connection; tls: from the beginning; none: of this machine
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: Annotated[str, Meta(max_length=300)] = ""
    password: Annotated[str, Meta(max_length=1_000)] = ""
    #: a file with certificates, where the server's is of none that this machine trusts
    ca_file: Annotated[str, Meta(max_length=4_000)] = ""


def read_mail_server(file: Path) -> MailServer:
    """Read a JSON object of up to 64 KiB.

    Raises:
        BadMailServer: it can't be read or used.
    """
    try:
        mode = file.stat().st_mode
        with file.open("rb") as opened:
            text = opened.read(_MOST_FILE_BYTES)
        server = msgspec.json.decode(text, type=MailServer)
    except OSError as problem:
        raise BadMailServer(f"{file}: {problem.strerror}.") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise BadMailServer(f"{file}: {problem}.") from None
    if server.password and mode & 0o077:
        raise BadMailServer(f"{file}: others can read the password. chmod 600 {file}")
    if server.security == "none" and server.host not in _LOOPBACK:
        raise BadMailServer(
            f'{file}: "security": "none" is for a server of this machine; mail goes '
            'to others by "starttls" or "tls".'
        )
    if not is_address(server.sender):
        raise BadMailServer(f"{file}: `sender` is an address: hub@example.org.")
    return server


def mail_of(
    server: MailServer, pages: str, named: str, address: str, notices: Sequence[Notice]
) -> EmailMessage:
    """Write a mail.

    Args:
        server: whose sender it has.
        pages: address of the course's pages, with a slash at its end.
        named: its id, the same at each try.
        address: whom it goes to.
        notices: one or more, the earliest first.

    Raises:
        NotSent: the address can't be used: a header would not take it, or take several.
    """
    if not is_address(address):
        raise NotSent("this is no address for mail", is_final=True)
    first = notices[0]
    about = first.words if len(notices) == 1 else f"{len(notices)} notices"
    mail = EmailMessage()
    mail["From"] = server.sender
    mail["To"] = address
    mail["Subject"] = bounded(f"{first.title or 'Hub'}: {about}", 120)
    mail["Date"] = formatdate()
    mail["Message-ID"] = f"<{named}@{server.sender.partition('@')[2]}>"
    # no answer to it is sent by a machine
    mail["Auto-Submitted"] = "auto-generated"
    lines = [f"{one.words}\n{pages}{one.path}\n" for one in notices]
    lines.append(f"-- \nFewer of these, or none: {pages}notices")
    mail.set_content("\n".join(lines))
    return mail


def send(server: MailServer, mail: EmailMessage) -> str:
    """Give a mail to the server; return once it has taken it.

    Raises:
        NotSent: it did not.
    """
    try:
        connection = _connected(server)
        try:
            if server.user:
                connection.login(server.user, server.password)
            connection.send_message(mail)
        finally:
            # it has the mail by now, whatever it says here
            with contextlib.suppress(OSError, smtplib.SMTPException):
                connection.quit()
    except smtplib.SMTPRecipientsRefused as problem:
        code, refusal = next(iter(problem.recipients.values()))
        raise NotSent(_answer(code, refusal), is_final=code >= 500) from None
    except smtplib.SMTPResponseException as problem:
        words = _answer(problem.smtp_code, problem.smtp_error)
        # the operator mends a password that is wrong; a mail that is refused stays so
        is_final = isinstance(problem, smtplib.SMTPDataError) and (
            problem.smtp_code >= 500
        )
        raise NotSent(words, is_final) from None
    except (OSError, smtplib.SMTPException, ssl.SSLError) as problem:
        raise NotSent(f"{type(problem).__name__}: {problem}", False) from None
    return "taken"


def _connected(server: MailServer) -> smtplib.SMTP:
    if server.security == "none":
        return smtplib.SMTP(server.host, server.port, timeout=_WAIT_S)
    context = ssl.create_default_context(cafile=server.ca_file or None)
    if server.security == "tls":
        return smtplib.SMTP_SSL(
            server.host, server.port, timeout=_WAIT_S, context=context
        )
    connection = smtplib.SMTP(server.host, server.port, timeout=_WAIT_S)
    connection.starttls(context=context)
    return connection


def _answer(code: int, words: bytes | str) -> str:
    text = words.decode(errors="replace") if isinstance(words, bytes) else words
    return f"{code} {text}"
