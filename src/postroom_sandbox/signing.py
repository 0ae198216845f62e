"""Google's signing key: signs identity tokens and push tokens, and publishes the public key."""

import base64
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import orjson
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

KEY_ID = "sandbox-1"
ISSUER = "https://accounts.google.com"


class Signer:
    """One RSA key, generated on first use."""

    def __init__(self, key_id: str = KEY_ID) -> None:
        self._key_id = key_id

    def sign(self, claims: Mapping[str, Any]) -> str:
        """The claims as a JWT (RS256)."""
        head = {"alg": "RS256", "kid": self._key_id, "typ": "JWT"}
        signed = b".".join(_base64(orjson.dumps(part)) for part in (head, dict(claims)))
        return (signed + b"." + _base64(self._key.sign(signed, padding.PKCS1v15(), SHA256()))).decode()

    def keys(self) -> dict[str, Any]:
        """The public half, as a JSON Web Key Set."""
        numbers = self._key.public_key().public_numbers()
        return {
            "keys": [
                {
                    "kty": "RSA",
                    "alg": "RS256",
                    "use": "sig",
                    "kid": self._key_id,
                    "n": _number(numbers.n),
                    "e": _number(numbers.e),
                }
            ]
        }

    @cached_property
    def _key(self) -> rsa.RSAPrivateKey:
        return rsa.generate_private_key(65537, 2048)


def _number(value: int) -> str:
    return _base64(value.to_bytes((value.bit_length() + 7) // 8, "big")).decode()


def _base64(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")
