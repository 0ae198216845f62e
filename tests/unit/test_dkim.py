"""Signatures, checked by another implementation than the one that made them."""

import base64
import hashlib
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import dkim
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from dkim.canonicalization import Relaxed
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.outbound.destinations import SigningKey
from postroom.outbound.smtp.dkim import CannotSign, Signer, author_domain, relaxed_body, with_signatures

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
MAIL = (
    b"Received: from a\r\n\tby b\r\nFrom: =?utf-8?q?M=C3=A4ra?= <mara@Sender.example>\r\nTo: ada@example.org,\r\n"
    b" bob@x.example\r\nSubject:  Hello   there \r\nSubject: twice\r\nMessage-ID: <1@sender.example>\r\n"
    b"Date: Sun, 15 Nov 2026 08:00:00 +0000\r\n\r\nHello  \t world \r\n\r\n.dot\r\n \r\n\r\n\r\n"
)
RSA = generate_private_key(65537, 2048)
ED = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"a key of the tests").digest())


def pem(key: Any) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


RSA_KEY = SigningKey("sender.example", "r1", "rsa-sha256", pem(RSA))
ED_KEY = SigningKey("sender.example", "e1", "ed25519-sha256", ED.private_bytes_raw())


def records(name: bytes, timeout: int = 5) -> bytes:
    """The keys in the DNS."""
    if name == b"r1._domainkey.sender.example.":
        public = RSA.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return b"v=DKIM1; k=rsa; p=" + base64.b64encode(public)
    return b"v=DKIM1; k=ed25519; p=" + base64.b64encode(ED.public_key().public_bytes_raw())


class Nacl:
    """The two names of PyNaCl that dkimpy uses to check Ed25519, by `cryptography`."""

    class encoding:  # noqa: N801
        Base64Encoder = None

    class exceptions:  # noqa: N801
        BadSignatureError = ZeroDivisionError
        ValueError = ValueError

    class signing:  # noqa: N801
        class VerifyKey:
            def __init__(self, public: bytes, encoder: object) -> None:
                self._key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public))

            def verify(self, message: bytes, signature: bytes) -> bool:
                self._key.verify(signature, message)
                return True


@pytest.fixture(autouse=True)
def _nacl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dkim, "nacl", Nacl, raising=False)


def verified(mail: bytes, which: int = 0) -> bool:
    try:
        return dkim.DKIM(mail).verify(which, dnsfunc=records)
    except dkim.ValidationError:
        return False


@pytest.mark.parametrize("key", [RSA_KEY, ED_KEY], ids=["rsa", "ed25519"])
def test_another_implementation_accepts_the_signature(key: SigningKey):
    signed = with_signatures(MAIL, [key], NOW)
    assert signed.endswith(MAIL)
    assert all(len(line) <= 100 for line in signed.removesuffix(MAIL).split(b"\r\n"))
    assert verified(signed)


def test_a_mail_may_have_two_signatures():
    signed = with_signatures(MAIL, [RSA_KEY, ED_KEY], NOW)
    assert verified(signed, 0)
    assert verified(signed, 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Hello  \t world", b"Hello wurld"),
        (b"ada@", b"eve@"),
        (b"twice", b"thrice"),
        (b"Received:", b"From: eve@evil.example\r\nReceived:"),
        (b"Received:", b"Subject: more\r\nReceived:"),
        (b"Received:", b"Reply-To: eve@evil.example\r\nReceived:"),
    ],
)
def test_what_was_changed_or_added_is_noticed(old: bytes, new: bytes):
    assert not verified(with_signatures(MAIL, [RSA_KEY], NOW).replace(old, new, 1))


def test_what_the_way_may_change_is_not():
    signed = with_signatures(MAIL, [RSA_KEY], NOW).replace(b"Subject:  Hello   there ", b"SUBJECT: Hello\r\n there")
    assert verified(b"Received: from us\r\n" + signed.replace(b"world \r\n", b"world\r\n"))


@given(st.lists(st.sampled_from([b"a", b" ", b"\t", b"\r\n", b" \r\n", b"b c", b"\xc3\xbc", b"."])).map(b"".join))
def test_bodies_are_reduced_as_the_other_implementation_does_it(body: bytes):
    assert relaxed_body(body + b"\r\n") == Relaxed.canonicalize_body(body + b"\r\n")


@given(st.binary(max_size=300).map(lambda text: text.replace(b"\r", b"").replace(b"\n", b"\r\n") + b"\r\n"))
def test_any_body_is_signed(body: bytes):
    assert verified(with_signatures(MAIL[: MAIL.index(b"\r\n\r\n") + 4] + body, [ED_KEY], NOW))


@pytest.mark.parametrize(
    "mail", [b"", b"\r\n", b"\r\n\r\nbody\r\n", b"no header\r\n", b"From: mara@sender.example\r\n"]
)
def test_odd_mail_is_signed_without_an_error(mail: bytes):
    assert with_signatures(mail, [ED_KEY], NOW).startswith(b"DKIM-Signature: v=1;")


@pytest.mark.parametrize(
    ("head", "domain"),
    [
        (b"From: Mara <mara@Sender.Example>", "sender.example"),
        (b"from : mara@b\xc3\xbccher.example", "xn--bcher-kva.example"),
        (b"From: a@one.example,\r\n b@two.example", "one.example"),
        (b"From: nobody", ""),
        (b"To: ada@example.org", ""),
    ],
)
def test_the_domain_of_the_author(head: bytes, domain: str):
    assert author_domain(head + b"\r\n\r\nFrom: x@body.example\r\n") == domain


class Keys:
    def __init__(self, **keys: SigningKey) -> None:
        self._keys = keys

    async def keys_of(self, domain: str) -> Sequence[SigningKey]:
        found = self._keys.get(domain.replace(".", "_"))
        return [found] if found is not None else []


async def test_mail_is_signed_by_the_key_of_its_author_or_of_its_sender():
    signer = Signer(Keys(sender_example=ED_KEY), lambda: NOW)
    assert b"d=sender.example; s=e1;" in await signer.signed(MAIL, "bounce@other.example")
    other = MAIL.replace(b"Sender.example>", b"elsewhere.example>")
    assert b"d=sender.example; s=e1;" in await signer.signed(other, "bounce@Sender.example")
    assert await signer.signed(other, "bounce@other.example") == other


async def test_signing_leaves_the_event_loop_alone():
    threads: list[str] = []

    def noting(*work: Any) -> bytes:
        threads.append(threading.current_thread().name)
        return with_signatures(*work)

    with ThreadPoolExecutor(1, "signing") as executor, pytest.MonkeyPatch.context() as patch:
        patch.setattr("postroom.outbound.smtp.dkim.with_signatures", noting)
        assert verified(await Signer(Keys(sender_example=RSA_KEY), lambda: NOW, executor).signed(MAIL, ""))
    assert threads == ["signing_0"]


@pytest.mark.parametrize(
    "key",
    [
        RSA_KEY._replace(private=b"rubbish"),
        RSA_KEY._replace(algorithm="ed25519-sha256"),
        ED_KEY._replace(algorithm="rsa-sha256"),
        ED_KEY._replace(private=b"short"),
    ],
)
def test_a_key_that_can_not_sign_says_which_it_is(key: SigningKey):
    with pytest.raises(CannotSign, match=f"the key {key.selector} of sender.example"):
        with_signatures(MAIL, [key], NOW)
