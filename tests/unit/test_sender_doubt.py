"""Doubt about a sender: failed authentication, found by the account's own host alone, and an unclear From."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.mail.headers import Headers
from postroom.core.mail.mime import parse_message
from postroom.core.mail.sender_doubt import is_own_host, parse_results, sender_doubt, top_host
from postroom.core.mail.tiers import Known, assign_tier, assign_tier_from_raw
from support.processor_time import MILLION, within_turns

HOST = "mx.google.com"
IDA = "ida@lindqvist.example"
KNOWN = Known(frozenset({"mara@lindqvist.example"}), frozenset({IDA}), own_hosts=frozenset({HOST}))
FROM_IDA = ("From", f"Ida <{IDA}>")
RESULTS = "Authentication-Results"
HOP = ("Received", f"from relay.example by {HOST} with ESMTP")
FAIL = f"{HOST}; dmarc=fail (p=REJECT sp=REJECT dis=NONE) header.from=lindqvist.example"
PASS = f"{HOST}; dmarc=pass (p=REJECT sp=REJECT dis=NONE) header.from=lindqvist.example"
SPF_FAIL = "spf=fail (x does not designate y) smtp.mailfrom=ida@lindqvist.example"


def assigned_rule(headers: Headers, known: Known = KNOWN) -> str:
    """The tier rule for these headers, the same from parsed headers and from raw bytes."""
    raw = ("\r\n".join(f"{name}: {value}" for name, value in headers) + "\r\n\r\nHello").encode()
    rules = {assign_tier(each, known).rule for each in (headers, parse_message(raw).headers)}
    rules.add(assign_tier_from_raw(raw, known).rule)
    [rule] = rules
    return rule


FORGED: dict[str, Headers] = {
    "dmarc fails": ((RESULTS, FAIL), FROM_IDA),
    "the header is written in capitals": ((RESULTS.upper(), FAIL.upper()), FROM_IDA),
    "the host gives a version": ((RESULTS, f"{HOST} 1; dmarc/1 = fail"), FROM_IDA),
    "comments stand everywhere": ((RESULTS, f"(a) {HOST} (b (c)); (d) dmarc (e) = (f) fail (g)"), FROM_IDA),
    "dkim passes for another domain": ((RESULTS, f"{HOST}; dkim=pass header.d=evil.example; dmarc=fail"), FROM_IDA),
    "a forged pass of the host stands below": ((RESULTS, FAIL), (RESULTS, PASS), FROM_IDA),
    "a forged pass of the host stands below the hop": ((RESULTS, FAIL), HOP, (RESULTS, PASS), FROM_IDA),
    "results of another host stand above": ((RESULTS, "scan.example; dmarc=pass"), (RESULTS, FAIL), FROM_IDA),
    "the verdict is in a second header": ((RESULTS, f"{HOST}; dkim=none"), (RESULTS, FAIL), FROM_IDA),
    "the envelope sender quotes a pass": (
        (RESULTS, f'{HOST}; spf=pass smtp.mailfrom="x;dmarc=pass"@evil.example; dmarc=fail'),
        FROM_IDA,
    ),
    "the envelope sender injects a pass": (
        (RESULTS, f"{HOST}; spf=pass (of x); dmarc=pass (@evil.example) smtp.mailfrom=x; dmarc=fail (p=NONE)"),
        FROM_IDA,
    ),
    "the envelope sender opens a comment": (
        (RESULTS, f"{HOST}; spf=pass (of (@evil.example) smtp.mailfrom=(@evil.example; dmarc=fail (p=NONE)"),
        FROM_IDA,
    ),
    "the envelope sender opens a string": (
        (RESULTS, f'{HOST}; spf=pass smtp.mailfrom="x@evil.example; dmarc=fail header.from=lindqvist.example'),
        FROM_IDA,
    ),
    "the host judged another From": ((RESULTS, f"{HOST}; dmarc=pass header.from=evil.example"), FROM_IDA),
    "spf refuses, without dmarc": ((RESULTS, f"{HOST}; {SPF_FAIL}"), FROM_IDA),
    "spf refuses, without a policy of dmarc": ((RESULTS, f"{HOST}; {SPF_FAIL}; dkim=fail; dmarc=none"), FROM_IDA),
    "a forged pass follows a refusal by spf": ((RESULTS, f"{HOST}; {SPF_FAIL}"), (RESULTS, PASS), FROM_IDA),
    "a second From": (FROM_IDA, ("From", "evil@evil.example")),
    "a first From": (("From", "evil@evil.example"), FROM_IDA),
    "the same From twice": (FROM_IDA, FROM_IDA),
    "a group": (("From", f"Friends: {IDA};"),),
    "a group of others with the contact behind": (("From", f"Friends: evil@evil.example;, {IDA}"),),
    "two mailboxes": (("From", f"evil@evil.example, {IDA}"),),
    "two mailboxes, the contact first": (("From", f"{IDA}, evil@evil.example"),),
    "two addresses in brackets": (("From", f"<{IDA}> <evil@evil.example>"),),
    "two bare addresses": (("From", f"{IDA} evil@evil.example"),),
    "another address as the name": (("From", f"evil@evil.example <{IDA}>"),),
    "an encoded contact as the name": (("From", "=?utf-8?q?ida=40lindqvist.example?= <evil@evil.example>"),),
    "an encoded list": (("From", "=?utf-8?q?Ida_=3Cida=40lindqvist.example=3E=2C?= <evil@evil.example>"),),
    "the contact as a quoted name": (("From", f'"{IDA}" <evil@evil.example>'),),
    "the contact in a comment": (("From", f"evil@evil.example ({IDA})"),),
    "empty brackets": (("From", f"{IDA} <>"),),
}  # fmt: skip


@pytest.mark.parametrize("form", FORGED)
def test_a_forged_contact_is_no_known_contact(form: str) -> None:
    headers = (*FORGED[form], ("To", "mara@lindqvist.example"))
    assert assigned_rule(headers) == "direct_correspondence"
    assert assigned_rule((HOP, *headers)) == "direct_correspondence"


HONEST: dict[str, Headers] = {
    "no results": (FROM_IDA,),
    "dmarc passes": ((RESULTS, PASS), FROM_IDA),
    "another host says fail": ((RESULTS, "mx.evil.example; dmarc=fail"), FROM_IDA),
    "a name that only begins like the host's": ((RESULTS, f"{HOST}.evil.example; dmarc=fail"), FROM_IDA),
    "a fail written by the sender, below": ((RESULTS, PASS), (RESULTS, FAIL), FROM_IDA),
    "a fail written by the sender, below the hop": ((RESULTS, f"{HOST}; dkim=none"), HOP, (RESULTS, FAIL), FROM_IDA),
    "a fail in a comment": ((RESULTS, f"{HOST}; dmarc=pass (was dmarc=fail); dkim=pass"), FROM_IDA),
    "a fail in a string": ((RESULTS, f'{HOST}; dmarc=pass reason="x; dmarc=fail"'), FROM_IDA),
    "an older header of another kind": (("ARC-Authentication-Results", f"i=1; {FAIL}"), FROM_IDA),
    "no policy": ((RESULTS, f"{HOST}; dmarc=none; spf=softfail smtp.mailfrom={IDA}"), FROM_IDA),
    "an error": ((RESULTS, f"{HOST}; dmarc=temperror; spf=temperror smtp.mailfrom={IDA}"), FROM_IDA),
    "a broken signature alone": ((RESULTS, f"{HOST}; dkim=fail header.d=lindqvist.example"), FROM_IDA),
    "forwarded, with a signature": ((RESULTS, f"{HOST}; {SPF_FAIL}; dkim=pass header.i=@lindqvist.example"), FROM_IDA),
    "spf refuses another domain": ((RESULTS, f"{HOST}; spf=fail smtp.mailfrom=x@relay.example"), FROM_IDA),
    "dmarc above, spf below": ((RESULTS, PASS), (RESULTS, f"{HOST}; {SPF_FAIL}"), FROM_IDA),
    "the policy of the domain above": ((RESULTS, f"{HOST}; dmarc=pass header.from=example"), FROM_IDA),
    "no results at all": ((RESULTS, f"{HOST}; none"), FROM_IDA),
    "nonsense": ((RESULTS, f"{HOST}; =; ;;; dmarc; dmarc=; fail"), FROM_IDA),
    "the address as its own name": (("From", f"{IDA} <{IDA}>"),),
    "a name with a comma": (("From", f"Lindqvist, Ida <{IDA}>"),),
    "a quoted colon": (("From", f'"Ida: home" <{IDA}>'),),
    "an encoded comma": (("From", f"=?utf-8?q?Lindqvist=2C_Ida?= <{IDA}>"),),
}


@pytest.mark.parametrize("form", HONEST)
def test_an_honest_contact_is_known(form: str) -> None:
    assert assigned_rule(HONEST[form]) == "known_contact"


def test_without_a_known_host_nobody_is_believed() -> None:
    strangers = Known(KNOWN.user_addresses, KNOWN.contacts)
    assert assigned_rule(((RESULTS, FAIL), FROM_IDA), strangers) == "known_contact"


def test_failing_outweighs_an_unclear_sender_and_no_sender_is_in_no_doubt() -> None:
    assert sender_doubt(((RESULTS, FAIL), FROM_IDA, FROM_IDA), {HOST}) == "failed"
    assert sender_doubt((FROM_IDA, FROM_IDA), {HOST}) == "unclear"
    assert sender_doubt(((RESULTS, FAIL), ("From", "undisclosed")), {HOST}) is None
    assert sender_doubt((), {HOST}) is None


def test_a_verdict_that_was_cut_off_is_a_failure() -> None:
    assert sender_doubt(((RESULTS, f"{HOST}; dkim=none ({'x' * 70_000})"), FROM_IDA), {HOST}) == "failed"


@pytest.mark.parametrize("run", ["a", "a ", "a.", "a.a=", " ", "/1", "(", '"', ";a=b "])
def test_results_that_are_made_to_be_slow_are_read_within_bounds(run: str) -> None:
    value = "mx.example; dmarc=pass " + run * (65_000 // len(run))
    within_turns(10 * MILLION, lambda: parse_results(value))


def test_a_host_is_compared_without_case_and_may_stand_for_all_below_it() -> None:
    assert is_own_host("mx1.mail.example", {"*.Mail.example"})
    assert not is_own_host("mail.example", {"*.mail.example"})
    assert not is_own_host("evilmail.example", {"*.mail.example"})
    assert not is_own_host("", {"*.mail.example", ""})


def test_the_topmost_host_is_named_even_if_quoted() -> None:
    assert top_host(((RESULTS, '"MX.Example" 1; none'), (RESULTS, FAIL))) == "mx.example"
    assert top_host(((RESULTS, "spf=fail smtp.mailfrom=x; dmarc=fail"),)) == ""
    assert top_host((FROM_IDA,)) == ""


@given(st.text(alphabet='()"\\;=/. \tabdmrcfiles@<>:,', max_size=200))
def test_no_value_makes_reading_fail(value: str) -> None:
    parse_results(value)
    sender_doubt(((RESULTS, f"{HOST}; {value}"), ("From", value)), {HOST})


@given(st.text(alphabet='()"\\;=/. abcdmrpass', max_size=40))
def test_no_envelope_sender_hides_a_failure(sender: str) -> None:
    quoted = f"{HOST}; spf=pass ({HOST}: domain of {sender}@evil.example designates it) smtp.mailfrom={sender}"
    headers = ((RESULTS, f"{quoted}@evil.example; dmarc=fail (p=REJECT) header.from=lindqvist.example"), FROM_IDA)
    assert sender_doubt(headers, {HOST}) == "failed"
