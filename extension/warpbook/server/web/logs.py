"""Log lines: those of requests, as JSON where a setting says so, never with a token."""

from __future__ import annotations

import json
import logging
import re
import secrets
import sys
import time

from tornado import web

_SECRETS = re.compile(
    r"(?i)(token=|secret=|authorization['\"]?\s*[:=]\s*(?:bearer |token )?)[^\s&\"']+"
)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
#: ours, with all below them
_LOGGERS = ("warpbook", "warpbook_monitors", "warpbook_labs")
#: what a line of a request has beside its message
_REQUEST_FIELDS = ("request_id", "method", "route", "status", "reason")

_requests = logging.getLogger("warpbook.requests")


def without_secrets(text: str) -> str:
    """Leave out what follows `token=` or `Authorization:`, and end no line early."""
    return _SECRETS.sub(r"\1[secret]", text).replace("\r", "\\r").replace("\n", "\\n")


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_secrets(record.getMessage()),
        }
        for name in _REQUEST_FIELDS:
            value = getattr(record, name, None)
            if value is not None:
                text = without_secrets(value) if isinstance(value, str) else value
                line[name] = text
        if record.exc_info:
            line["traceback"] = _SECRETS.sub(
                r"\1[secret]", self.formatException(record.exc_info)
            )
        return json.dumps(line)


def write_json_lines() -> None:
    """Write what warpbook logs as JSON lines to the error output; twice is once."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if any(isinstance(present.formatter, JsonLines) for present in logger.handlers):
            continue
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines())
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False


def request_id(handler: web.RequestHandler) -> str:
    """Give a request's id: its own, if it is a plain one, or a new one."""
    given = handler.request.headers.get("X-Request-Id", "")
    return given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


def log_refusal(handler: web.RequestHandler, route: str, reason: str) -> None:
    """Log a request that failed or was refused, by its route and never by its URL."""
    status = handler.get_status()
    _requests.log(
        logging.ERROR if status >= 500 else logging.WARNING,
        "%d %s %s: %s",
        status,
        handler.request.method,
        route,
        without_secrets(reason),
        extra={
            "request_id": getattr(handler, "request_id", None),
            "method": handler.request.method,
            "route": route,
            "status": status,
            "reason": reason,
        },
    )
