"""A service account's key for tests, made once per run: making one takes a while."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

ROBOT = "hints@home.iam.gserviceaccount.com"


@cache
def private_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def key_fields(**changes: Any) -> dict[str, Any]:
    """What Google writes into a key file."""
    pem = private_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return {
        "type": "service_account",
        "project_id": "home",
        "private_key_id": "f00d",
        "private_key": pem,
        "client_email": ROBOT,
        "token_uri": "https://oauth2.googleapis.com/token",
        **changes,
    }


def write_key(path: Path, fields: dict[str, Any], mode: int = 0o600) -> Path:
    path.touch(mode=0o600)
    path.write_text(json.dumps(fields))
    path.chmod(mode)
    return path
