"""Tokens of programs: shown once, and kept as a digest alone."""

from __future__ import annotations

import secrets
from hashlib import sha256


def new_token() -> str:
    """Draw a token."""
    return secrets.token_hex(32)


def token_digest(token: str) -> str:
    """Give what is kept of a token; anything may have been sent as one."""
    return sha256(token.encode(errors="replace")).hexdigest()
