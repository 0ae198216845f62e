"""Categories of mail: searches for the provider, and a check of each message."""

import time
from datetime import UTC, datetime

import pytest

from postroom.core.errors import BadInput
from postroom.core.mail.categories import CATEGORIES, LONGEST_QUERY, categories_of, chosen_categories, queries_of
from postroom.core.mail.category_words import UNSUBSCRIBE
from postroom.core.mail.evidence import STEM, WORDS, plain_words, terms
from postroom.core.mail.ingestion import EXCERPT_END, EXCERPT_START, IngestionFacts, excerpt
from postroom.core.mail.mime import parse_message
from postroom.core.mail.tiers import Known
from postroom_sandbox.query import parse_query
from postroom_sandbox.search_terms import Setting

MARA = "mara@x.example"
KNOWN = Known.of({MARA}, {"ida@x.example"}, {"<asked@x.example>"})


def categories(head: str, text: str = "Hello") -> list[str]:
    return categories_of(IngestionFacts.of(parse_message(f"{head}\n\n{text}".encode())), KNOWN)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("Subject: Your invoice of May", ["finance"]),
        ("Subject: =?utf-8?q?INVOICE?=", ["finance"]),
        ("From: service@mail.paypal.com", ["finance"]),
        ("From: service@notpaypal.com", []),
        ("From: billing@y.example\nSubject: {amount} EUR 12.00", ["finance"]),
        ("From: no-reply@y.example\nSubject: Ihre Mobilfunkrechnung", ["finance"]),
        ("Subject: Appointment with Dr. Smith", ["health"]),
        ("From: post@praxis-dr-amsel.example\nSubject: Ihr Termin", ["health"]),
        ("Subject: Your boarding pass", ["travel"]),
        ("Subject: Receipt for your hotel booking", ["finance", "travel"]),
        ("From: ida@x.example", ["relationship"]),
        (f"From: jo@y.example\nTo: {MARA}", ["relationship"]),
        (f"From: Jo Holm <jo@holm.example>\nTo: {MARA}", ["relationship"]),
        (f"From: Holm Shoes <jo@holmshoes.example>\nTo: {MARA}", []),
        ("From: jo@y.example\nTo: other@x.example", []),
        ("From: jo@y.example\nTo: other@x.example\nIn-Reply-To: <asked@x.example>", ["relationship"]),
        (f"From: no-reply@y.example\nTo: {MARA}", []),
        (f"From: billing@y.example\nTo: {MARA}", ["finance"]),
        (f"From: jo@y.example\nTo: {MARA}\nFeedback-ID: 1:y", []),
        (f"From: jo@y.example\nTo: {MARA}\nSubject: Automatic reply: stairs", []),
        (f"From: jo@y.example\nTo: {MARA}\nAuto-Submitted: auto-replied", []),
        (f"From: jo@y.example\nTo: {MARA}\nAuto-Submitted: no", ["relationship"]),
        (f"From: jo@y.example\nTo: {MARA}\nList-Unsubscribe: <x>", ["newsletters"]),
        ("List-Id: <x>", ["newsletters"]),
        ("Precedence: bulk", ["newsletters"]),
        ("From: newsletter@y.example", ["newsletters"]),
        ("From: jo@z.example\nTo: list@y.example\nSubject: Re: [choir] lifts", []),
        ("From: jo@z.example\nTo: choir@y.example\nSubject: [choir] lifts", []),
        ("From: jo@z.example\nTo: choir@y.example\nList-Id: <c>\nList-Post: <mailto:c@y.example>", []),
        ("From: jo@z.example\nTo: mara-choir@x.example\nSubject: [choir] Programme of May", ["newsletters"]),
        ("Subject: hello", []),
    ],
)
def test_a_message_is_in_the_categories_it_belongs_to(head: str, expected: list[str]) -> None:
    assert categories(head) == expected


@pytest.mark.parametrize(
    ("subject", "text", "expected"),
    [
        ("Flights from $49", "Book your trip today.", []),
        ("Your invoice, made easy", "Try our invoices free for 30 days.", []),
        ("Ask the doctor", "Is coffee healthy?", []),
        ("Order A7 confirmed", "Order number 4711. Order total: EUR 12.00", ["finance"]),
        ("Your stay in Oslo is confirmed", "Reservation number 4711. Check-in on Friday.", ["travel"]),
    ],
)
def test_bulk_mail_needs_a_proof_that_it_concerns_the_user(subject: str, text: str, expected: list[str]) -> None:
    head = f"From: shop@y.example\nSubject: {subject}\nList-Unsubscribe: <x>"
    assert categories(head, text) == (expected or ["newsletters"])


@pytest.mark.parametrize(
    ("subject", "text", "expected"),
    [
        ("Invoice for the roof", "Payment within 14 days, please. IBAN below.", ["finance", "relationship"]),
        ("The train book", "I found the book about the night train.", ["relationship"]),
        ("Photos", "The hotel had no wifi.", ["relationship"]),
        ("My flight", "I arrive at the airport at nine, the hotel is booked.", ["relationship", "travel"]),
        ("Lunch", "The doctor says I may eat again.", ["relationship"]),
    ],
)
def test_people_mention_things_that_their_mail_is_not_about(subject: str, text: str, expected: list[str]) -> None:
    assert categories(f"From: Jo Holm <jo.holm@y.example>\nTo: {MARA}\nSubject: {subject}", text) == expected


def test_a_message_that_offers_to_unsubscribe_is_a_newsletter_without_any_header() -> None:
    assert categories(f"From: The Page <page@y.example>\nTo: {MARA}", "Good morning. Unsubscribe here.") == [
        "newsletters"
    ]
    reply = f"From: Jo Holm <jo@y.example>\nTo: {MARA}\nIn-Reply-To: <1@y.example>"
    assert categories(reply, "Just unsubscribe.") == ["relationship"]


@pytest.mark.parametrize(
    ("sender", "subject", "text"),
    [
        ("Jo Holm <jholm@firstvalleybank.example>", "Tennis on Sunday?", "We need a fourth. First Valley Bank"),
        ("jholm@firstvalleybank.example", "Sunday", "Are you free at ten?"),
        ("Anna Kern <a.kern@klinik.example>", "Party", "I turn forty, come at four. Klinik Nord"),
        ("Jo Holm <jo@y.example>", "Dr. Smith's talk", "It begins at six in the large hall."),
        ("Jo Holm <jo@y.example>", "Labor Day", "Burgers, and arts and crafts for the children."),
        (
            "Jo Holm <jo@y.example>",
            "Management report",
            "Transactions 1,870. Value $ 1,318,734. Shares rose, interest fell.",
        ),
        (
            "Jo Holm <jo@y.example>",
            "Re: the meeting",
            "Ida is traveling until Thursday. We hire two people and train them.",
        ),
    ],
)
def test_a_sender_or_a_title_or_the_words_of_business_do_not_make_a_matter(
    sender: str, subject: str, text: str
) -> None:
    assert categories(f"From: {sender}\nTo: {MARA}\nSubject: {subject}", text) == ["relationship"]


def test_a_person_at_a_bank_may_write_about_a_loan() -> None:
    head = f"From: Jo Holm <jholm@firstvalleybank.example>\nTo: {MARA}\nSubject: FW: Lind #10386"
    assert categories(head, "The draw request needs the signature of the borrower.") == ["finance", "relationship"]


def letters_to(to: str, text: str = "Hello", sender: str = "jo@y.example") -> list[str]:
    return categories(f"Message-ID: <1@y.example>\nFrom: {sender}\nTo: {to}\nSubject: Notes", text)


def test_correspondence_is_between_few_people_and_a_copy_counts() -> None:
    others = ", ".join(f"p{number}@z.example" for number in range(4))
    assert letters_to(MARA) == ["relationship"]
    assert letters_to(f"pia@y.example\nCc: {MARA}") == ["relationship"]
    assert letters_to(f"{MARA}, {others}") == ["relationship"], "a circle of friends"
    assert letters_to(f"{MARA}, {others}", sender="jo@x.example") == [], "a colleague announces something"
    assert letters_to(", ".join([MARA, *(f"p{number}@z.example" for number in range(60))])) == []


def test_a_notice_that_offers_to_unsubscribe_is_about_what_its_subject_names() -> None:
    notice = "An invoice waits for you. You are receiving this message because you approve invoices."
    assert categories(f"From: payables@y.example\nTo: {MARA}\nSubject: Invoice 4711", notice) == ["finance"]
    assert categories(f"From: info@y.example\nTo: {MARA}\nSubject: Save on invoices", notice) == ["newsletters"]


def test_pictures_make_an_advertisement_and_a_mention_of_a_mailing_does_not() -> None:
    assert letters_to(MARA, "[IMAGE] [IMAGE] [IMAGE] Autumn colours") == ["newsletters"]
    assert letters_to(MARA, "How do I unsubscribe from that list?", "jo@gmail.com") == ["relationship"]


def test_a_letter_to_others_counts_and_a_line_does_not() -> None:
    assert letters_to("pia@z.example", "We met them on Monday. " * 20) == ["relationship"]
    assert letters_to("pia@z.example", "Thank you!\n\n-----Original Message-----\n" + "Long. " * 100) == []
    assert letters_to("team@z.example", "We met them on Monday. " * 20) == []


@pytest.mark.parametrize("to", ["undisclosed-recipients:;", "jo@y.example", "readers@y.example"])
def test_mail_that_names_nobody_or_its_own_house_is_a_newsletter(to: str) -> None:
    assert letters_to(to, "Shares fell. We remain overweight bank shares.") == ["newsletters"]
    assert letters_to(to, sender="jo@gmail.com") != ["newsletters"]


def test_somebody_who_sells_is_no_correspondent() -> None:
    offer = "My name is Jo. Our company is the leading provider of stairs. Schedule a demo?"
    assert letters_to(MARA, offer) == []
    assert letters_to(MARA, offer, "info@y.example") == ["newsletters"]


def test_a_booking_at_the_clinic_is_no_journey() -> None:
    head = "From: Harbour Clinic <bookings@harbour-clinic.example>\nSubject: Booking confirmed"
    assert categories(head, "Your vaccination is on Friday.") == ["health"]


def test_without_a_text_the_subject_and_the_sender_decide() -> None:
    facts = IngestionFacts("no-reply@y.example", (("Subject", "Your invoice"), ("From", "no-reply@y.example")))
    assert categories_of(facts, KNOWN) == ["finance"]


def test_an_excerpt_has_the_beginning_and_the_end_of_a_text() -> None:
    assert excerpt("short") == "short"
    cut = excerpt("a" * 5_000 + "z" * 5_000)
    assert cut == "a" * EXCERPT_START + "\n" + "z" * EXCERPT_END


@pytest.mark.parametrize("word", ["re: [", "invoice ", "\u0300", "ﷺ", "no-", "a" * 50, " ", "order number "])
def test_hostile_mail_takes_no_longer(word: str) -> None:
    endless = word * (100_000 // len(word))
    headers = (("Subject", endless), ("From", endless), ("Auto-Submitted", endless), ("Precedence", endless))
    started = time.process_time()
    categories_of(IngestionFacts(endless, headers, text=endless), KNOWN)
    assert time.process_time() - started < 0.5


def test_there_are_the_five_packs() -> None:
    assert list(CATEGORIES) == ["finance", "health", "relationship", "travel", "newsletters"]


@pytest.mark.parametrize("name", CATEGORIES)
def test_the_searches_are_ones_that_the_emulated_provider_understands(name: str) -> None:
    queries = queries_of([CATEGORIES[name]], MARA)
    assert queries
    for query in queries:
        assert len(query) <= LONGEST_QUERY
        assert query.startswith("(")
        assert query.endswith(")")
        parse_query(query, Setting(lambda label: label, frozenset({MARA}), datetime(2026, 1, 1, tzinfo=UTC)))


def test_several_categories_share_searches_and_repeat_nothing() -> None:
    alone = [query for category in CATEGORIES.values() for query in queries_of([category], MARA)]
    together = queries_of(list(CATEGORIES.values()), MARA)
    assert len(together) < len(alone)
    assert max(map(len, together)) <= LONGEST_QUERY
    assert queries_of([CATEGORIES["travel"], CATEGORIES["travel"]], MARA) == queries_of([CATEGORIES["travel"]], MARA)
    assert queries_of([], MARA) == []


def test_an_address_cannot_change_a_search() -> None:
    (query,) = queries_of([CATEGORIES["relationship"]], 'a") OR {in:anywhere}@x.example')
    assert "to:aORin:anywhere@x.example " in query


def test_the_word_lists_are_well_formed() -> None:
    for words in WORDS.values():
        assert all(len(stem) == STEM and plain_words(stem) == [stem] for stem in terms(words.stems))
        weighted = [term for field in (words.proof, words.strong, words.plain, words.weak) for term in terms(field)]
        assert len(weighted) == len(set(weighted))
        assert set(terms(words.shared)) <= set(weighted)
    assert all(plain_words(term) for term in terms(UNSUBSCRIBE))


def test_chosen_categories_are_given_once_each_in_the_order_asked() -> None:
    assert [each.name for each in chosen_categories(["travel", "finance", "travel"])] == ["travel", "finance"]


def test_an_unknown_category_is_refused_with_the_nearest() -> None:
    with pytest.raises(BadInput, match="did you mean 'finance'"):
        chosen_categories(["finances"])
    with pytest.raises(BadInput, match="use finance, health"):
        chosen_categories(["zzz"])
