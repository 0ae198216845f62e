"""The message in an envelope: in full, as metadata, or with neither headers nor metadata."""

from typing import Any

import pytest

from postroom.core.mail.message import MailContent, read_mail
from postroom.core.queue.envelope import parse_envelope

HEADERS = [["From", "Ann <Ann@Shop.example>"], ["Subject", "Hello"]]


def read(sender: str = "Somebody@Else.example", **payload: Any) -> MailContent:
    tier = {} if payload.get("raw") is not None else {"ingestion_tier": "metadata"}
    return read_mail(
        parse_envelope(
            {
                "schema_version": "ingest.v1",
                "source": {"channel": "email", "provider": "gmail", "endpoint_identity": "gmail:user:a@b.example"},
                "event": {"external_event_id": "m1", "observed_at": "2026-11-15T08:00:00Z"},
                "sender": {"identity": sender},
                "payload": {"raw": None, "normalized_text": "Words", **payload},
                "control": tier,
            }
        )
    )


def test_a_whole_message_has_its_sender_subject_and_text() -> None:
    mail = read(raw={"headers": HEADERS, "labels": ["INBOX"]})
    assert (mail.sender, mail.subject, mail.body_text) == ("ann@shop.example", "Hello", "Words")
    assert mail.labels == {"INBOX"}


def test_of_a_message_that_came_as_metadata_there_are_headers_and_labels_and_no_body() -> None:
    mail = read(metadata={"headers": HEADERS, "labels": ["INBOX", "UNREAD"], "sent_at": "2026-11-14T08:00:00Z"})
    assert (mail.sender, mail.subject, mail.body_text) == ("ann@shop.example", "Hello", "")
    assert (mail.labels, mail.sent_at.isoformat()) == ({"INBOX", "UNREAD"}, "2026-11-14T08:00:00+00:00")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2026-11-14T08:00:00Z", "2026-11-14T08:00:00+00:00"),
        (None, "2026-11-13T08:00:00+00:00"),
        ("1970-01-01T00:00:00Z", "2026-11-13T08:00:00+00:00"),
        ("2036-01-01T00:00:00Z", "2026-11-13T08:00:00+00:00"),
    ],
)
@pytest.mark.parametrize("form", ["raw", "metadata"])
def test_the_mailboxs_time_counts_and_without_it_the_date(form: str, given: str | None, expected: str) -> None:
    headers = [*HEADERS, ["Date", "Fri, 13 Nov 2026 10:00:00 +02:00"]]
    content = {"headers": headers} if given is None else {"headers": headers, "sent_at": given}
    mail = read(raw=content) if form == "raw" else read(metadata=content)
    assert mail.sent_at.isoformat() == expected


@pytest.mark.parametrize("payload", [{}, {"raw": {}}])
def test_without_headers_the_sender_is_who_the_connector_says(payload: dict[str, Any]) -> None:
    mail = read(**payload)
    assert (mail.sender, mail.subject, mail.labels) == ("somebody@else.example", "Words", frozenset())
    assert mail.sent_at.isoformat() == "2026-11-15T08:00:00+00:00"
