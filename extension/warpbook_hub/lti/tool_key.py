"""The hub's own key: what it says to the platform is signed with it."""

from __future__ import annotations

import json
import os
import secrets
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from warpbook_hub.errors import HubError

FILE = "lti_key.pem"
_BITS = 2048
_ASSERTION_S = 300


class BadKey(HubError):
    """The file with the key holds none; the message says what to do."""


class ToolKey:
    """An RSA key that is drawn once; only its public half is shown."""

    def __init__(self, folder: Path) -> None:
        """Read the key of a folder, or draw it.

        Raises:
            OSError: the file can't be read or written.
            BadKey: it holds no RSA key.
        """
        file = folder / FILE
        pem = _pem_of(file)
        try:
            key = serialization.load_pem_private_key(pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, rsa.RSAPrivateKey):
            raise BadKey(f"{file}: this is no RSA key. Delete it, and one is drawn.")
        self._key = key
        public = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
        self._public = {name: public[name] for name in ("e", "kty", "n")}
        # as RFC 7638 names a key
        text = json.dumps(self._public, separators=(",", ":"))
        self._kid = sha256(text.encode()).hexdigest()

    @property
    def key_set(self) -> dict[str, list[dict[str, Any]]]:
        """Give the public key set (JWKS), for the platform."""
        own = {**self._public, "kid": self._kid, "alg": "RS256", "use": "sig"}
        return {"keys": [own]}

    def assertion(self, client_id: str, audience: str) -> str:
        """Sign who we are; it is good for five minutes, and for one use."""
        now_s = int(time.time())
        claims = {
            "iss": client_id,
            "sub": client_id,
            "aud": audience,
            "iat": now_s,
            "exp": now_s + _ASSERTION_S,
            "jti": secrets.token_hex(16),
        }
        return jwt.encode(claims, self._key, "RS256", headers={"kid": self._kid})


def _pem_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        drawn = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    pem = drawn.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    unfinished = file.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with open(descriptor, "wb") as opened:
        opened.write(pem)
        opened.flush()
        os.fsync(opened.fileno())
    unfinished.replace(file)
    return pem
