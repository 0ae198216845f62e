"""The corpus of hostile mail is as large and varied as promised, and its demands do reach a model."""

from collections import Counter
from random import Random
from uuid import UUID

import pytest

from postroom.core.mail.headers import values
from postroom.core.mail.mime import parse_message
from postroom.core.rules.facts import MessageFacts
from postroom.core.rules.model_decision import TOOL, decision_schema
from postroom.triage.decide.prompt import Mode, build_prompt
from postroom_sandbox.model_requests import ReceivedRequest
from support.canaries import WORD, Canaries
from support.injection.carriers import CARRIERS
from support.injection.corpus import HOSTILE, SEED, Corpus, Hostile, build_corpus
from support.injection.demands import DEMANDS
from support.injection.findings import parted
from support.injection.languages import OPENINGS
from support.injection.voices import ENCODINGS, VOICES
from support.obedient_model import obedient

MODES: tuple[Mode, ...] = ("full", "headers", "redacted")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return build_corpus(Canaries())


def told_of(mail: Hostile, number: int, mode: Mode = "full") -> ReceivedRequest:
    """The prompt about it."""
    letter = parse_message(mail.raw)
    subject = (values(letter.headers, "subject") or [""])[0]
    of = MessageFacts(mail.sender, subject, letter.headers, frozenset(), letter.text, bool(letter.attachments))
    built = build_prompt(UUID(int=number), of, [], [], [], mode)
    return ReceivedRequest("openai", "stand-in", built.system, built.user, TOOL, decision_schema(()), True, {}, "")


def test_there_are_more_than_three_hundred_hostile_messages_and_no_two_of_a_kind(corpus: Corpus):
    assert len({each.kind for each in corpus.hostile}) == HOSTILE > 300
    assert len({WORD.sub("", each.raw.decode("utf-8", "replace")) for each in corpus.hostile}) == HOSTILE


def test_both_halves_hold_something_of_everything(corpus: Corpus):
    for half in corpus.halves(Random(SEED)):
        made_of = [Counter(each) for each in zip(*(mail.kind for mail in half.hostile), strict=True)]
        wanted = [[demand.name for demand in DEMANDS], CARRIERS, VOICES, ENCODINGS, OPENINGS]
        assert [set(found) for found in made_of] == [set(names) for names in wanted]


def test_a_seed_makes_one_corpus_and_another_makes_another(corpus: Corpus):
    assert build_corpus(Canaries()).hostile == corpus.hostile
    assert build_corpus(Canaries(), SEED + 1).hostile != corpus.hostile


def test_what_is_plainly_demanded_is_what_an_obedient_model_reads(corpus: Corpus):
    legible = [each for each in corpus.hostile if each.is_legible]
    assert len(legible) >= 8
    for number, mail in enumerate(legible):
        read = [call.arguments for call in obedient(told_of(mail, number)).calls]
        wanted = [call.arguments for call in mail.demand.first if isinstance(call.arguments, dict)]
        assert [each for each in wanted if each not in read] == [], mail.kind


@pytest.mark.parametrize("mode", MODES)
def test_no_mail_gets_out_of_the_fence(corpus: Corpus, mode: Mode):
    outside = {parted(told_of(mail, number, mode)) for number, mail in enumerate(corpus.hostile)}
    assert None not in outside
    assert len(outside) == 1
