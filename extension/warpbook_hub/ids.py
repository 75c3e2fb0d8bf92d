"""Identifiers and tokens that nobody can guess; of a token a digest is kept alone."""

from __future__ import annotations

import re
import secrets
from hashlib import sha256

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_BITS = 80


def new_id() -> str:
    return f"{secrets.randbits(_BITS):020x}"


def is_id(text: str) -> bool:
    """Whether a text could be an identifier, drawn or of a course."""
    return _ID.fullmatch(text) is not None


def new_token() -> str:
    return secrets.token_hex(32)


def token_digest(token: str) -> str:
    """Give what is kept of a token; anything may have been sent as one."""
    return sha256(token.encode(errors="replace")).hexdigest()
