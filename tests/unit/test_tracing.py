"""Spans: nested like the work, without mail content, and only passed on if nobody traces."""

import asyncio
import subprocess
import sys
from uuid import uuid4

import pytest
from opentelemetry.trace import StatusCode

from postroom.core.errors import Retryable
from postroom.telemetry.tracing import add_event, current_traceparent, span
from support.spans import above, place, recorded_spans

GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
NOT_SAMPLED = GIVEN[:-1] + "0"
FUTURE = f"cc{GIVEN[2:]}-more"


@pytest.mark.parametrize("given", [GIVEN, NOT_SAMPLED, FUTURE])
def test_without_a_tracer_a_given_traceparent_is_passed_on_unchanged(given: str):
    with span("job plain", given, attempt=1):
        assert current_traceparent() == given
        with span("gmail modify"):
            assert current_traceparent() == given
    assert current_traceparent() is None


@pytest.mark.parametrize("given", [None, "", "00-nonsense", GIVEN + "\n"])
def test_without_a_tracer_nothing_and_nonsense_are_dropped(given: str | None):
    with span("job plain", given):
        assert current_traceparent() is None
    with span("job plain", GIVEN), span("inner", given):
        assert current_traceparent() == GIVEN


def test_a_span_is_a_part_of_what_was_given_and_the_current_one_for_what_follows():
    job = uuid4()
    with recorded_spans() as spans, span("job plain", GIVEN, job=job, attempt=2):
        inside = current_traceparent()
        with span("gmail modify"):
            pass
    outer, inner = spans["job plain"], spans["gmail modify"]
    assert (above(outer), above(inner)) == (GIVEN, place(outer))
    assert inside == place(outer) != GIVEN
    assert outer.parent is not None
    assert inner.parent is not None
    assert (outer.parent.is_remote, inner.parent.is_remote) == (True, False)
    assert dict(outer.attributes or {}) == {"job": str(job), "attempt": 2}
    assert current_traceparent() is None


@pytest.mark.parametrize("given", [None, "00-nonsense"])
def test_without_a_parent_a_span_is_a_trace_of_its_own(given: str | None):
    with recorded_spans() as spans, span("job plain", given):
        assert current_traceparent() is not None
    assert above(spans["job plain"]) is None


def test_who_did_not_want_a_trace_gets_none_and_his_wish_goes_along():
    with recorded_spans() as spans, span("job plain", NOT_SAMPLED):
        inside = current_traceparent()
        assert inside is not None
        assert (inside[:36], inside[-2:]) == (NOT_SAMPLED[:36], "00")
    assert spans.names == []


def test_an_error_is_shown_by_its_kind_and_not_by_its_text():
    with recorded_spans() as spans, pytest.raises(Retryable), span("job plain"):
        raise Retryable("Subject: canary")
    failed = spans["job plain"]
    assert failed.status.status_code is StatusCode.ERROR
    assert dict(failed.attributes or {}) == {"error.type": "Retryable"}
    assert "canary" not in failed.to_json()
    assert current_traceparent() is None


def test_an_event_is_told_in_the_span_that_is_open():
    with recorded_spans() as spans:
        add_event("too early")
        with span("ingest"):
            with span("inner"):
                pass
            add_event("message.queued", priority="default", wait_ms=1.5)
        add_event("too late")
    assert spans["inner"].events == ()
    (event,) = spans["ingest"].events
    assert (event.name, dict(event.attributes or {})) == ("message.queued", {"priority": "default", "wait_ms": 1.5})


def test_without_a_tracer_an_event_is_told_to_nobody():
    with span("ingest", GIVEN):
        add_event("message.queued", priority="default")


async def test_tasks_side_by_side_have_each_their_own():
    async def work(given: str) -> str | None:
        with span("job plain", given):
            await asyncio.sleep(0)
            return current_traceparent()

    asked = [f"00-{number:032x}-00f067aa0ba902b7-01" for number in range(1, 20)]
    assert await asyncio.gather(*map(work, asked)) == asked


def test_importing_the_spans_does_not_import_opentelemetry():
    heavy = "any(name.startswith('opentelemetry') for name in sys.modules)"
    code = f"import sys, postroom.telemetry.tracing; sys.exit({heavy})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
