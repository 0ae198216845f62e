"""The categories of mail that a backfill can fetch: searches at the provider, and a check of each message.

The searches are broad, so that little is missed; the check decides. A message may be in several categories, or in none.
`finance`, `health` and `travel` are recognized by their words (core/mail/evidence.py), `relationship` and `newsletters`
by sender and recipients.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from postroom.core.errors import BadInput
from postroom.core.mail.category_words import PITCH, PLAIN, STRONG, UNSUBSCRIBE
from postroom.core.mail.evidence import (
    LONGEST_TEXT,
    PITCHES,
    PROMOTES,
    UNSUBSCRIBES,
    WORDS,
    fits,
    fits_sender,
    found_in_subject,
    found_in_text,
    terms,
)
from postroom.core.mail.ingestion import IngestionFacts
from postroom.core.mail.senders import Sending
from postroom.core.mail.tiers import Known
from postroom.core.suggestions import did_you_mean

LONGEST_QUERY = 1_500
# The most that a subject and a text weigh, and the score that each kind of mail needs to be in a category.
MOST_OF_SUBJECT, MOST_OF_TEXT = 4, 4
FROM_PROGRAM, FROM_PERSON, FROM_PERSON_BESIDES, BULK = 2, 3, 4, 4
# How many strong phrases the text of a person needs if the subject says nothing.
STRONG_BESIDES = 1
# How many phrases of sellers make a letter of a stranger an offer.
PITCH_FROM = 2
# How many words of advertisements make a text one.
ADVERTISES = 3

# A message between people is a letter from this many characters on, without quotations.
LETTER = 320
# So many pictures in a text make it an advertisement.
PICTURES = 3

_QUOTED = re.compile(
    r"-----|Forwarded by|^>|^(?:From|Von|De|Van|Da):| (?:wrote|schrieb|écrit|escribió|schreef|scritto)\b"
    r"|\d\d/\d\d/\d{2,4} \d\d:\d\d",
    re.MULTILINE,
)
_NARROW = "-category:promotions -category:forums -category:social"


class Search(NamedTuple):
    """A term in Gmail's syntax, after an operator such as `subject:` or none; `{user}` is the user's address.

    A `narrow` one looks only at mail that Gmail does not take for promotions, forums or social media.
    """

    operator: str
    term: str
    narrow: bool = False


@dataclass(frozen=True, slots=True)
class Category:
    """A category, and the searches that find its mail."""

    name: str
    searches: tuple[Search, ...]


def categories_of(facts: IngestionFacts, known: Known) -> list[str]:
    """The names of the categories that the message is in, in fixed order."""
    seen = _Seen(facts, known)
    found = seen.topics()
    if not found and seen.is_newsletter:
        found.add("newsletters")
    if seen.is_from_person:
        found.add("relationship")
    return [name for name in CATEGORIES if name in found]


def chosen_categories(names: Sequence[str], field: str = "category") -> list[Category]:
    """The categories with these names. Raises BadInput for one that does not exist."""
    for name in names:
        if name not in CATEGORIES:
            remedy = did_you_mean(name, CATEGORIES, f"use {', '.join(CATEGORIES)}")
            raise BadInput(field, f"{name[:80]!r} is unknown", remedy)
    return [CATEGORIES[name] for name in dict.fromkeys(names)]


def queries_of(categories: Sequence[Category], user_address: str) -> list[str]:
    """The searches that together find the mail of these categories, each short enough for Gmail.

    Each is one group in parentheses: a date range may be put before it.
    """
    address = re.sub(r"[\s(){}\"]", "", user_address)
    every = dict.fromkeys(search for category in categories for search in category.searches)
    queries: list[list[Search]] = []
    for search in sorted(every, key=lambda search: (search.narrow, search.operator)):
        search = search._replace(term=search.term.replace("{user}", address))
        if (
            queries
            and queries[-1][-1].narrow == search.narrow
            and len(_any_of([*queries[-1], search])) <= LONGEST_QUERY
        ):
            queries[-1].append(search)
        else:
            queries.append([search])
    return [_any_of(each) for each in queries]


def _any_of(searches: Sequence[Search]) -> str:
    """One search for any of these: `((order OR subject:(invoice OR receipt)) -category:promotions)`."""
    groups = groupby(searches, key=lambda search: search.operator)
    parts = [(operator, " OR ".join(search.term for search in group)) for operator, group in groups]
    found = f"({' OR '.join(f'{operator}({terms})' if operator else terms for operator, terms in parts)})"
    return f"({found} {_NARROW})" if searches[0].narrow else found


class _Seen:
    """A message while its categories are determined."""

    def __init__(self, facts: IngestionFacts, known: Known) -> None:
        self._known, self._facts = known, facts
        self._sending = sending = Sending(facts, known)
        self._subject = found_in_subject(sending.subject)
        needed = not sending.is_list_mail or any(
            self._subject.weight(name) or self._subject.shared(name) for name in WORDS
        )
        self._text = found_in_text(facts.text if needed else "", self._subject)
        self._totals = {name: self._subject.weight(name) + self._text.weight(name) for name in WORDS}
        unsubscribes = UNSUBSCRIBES in self._text.weights and "in-reply-to" not in sending.headers
        designed = not sending.is_answer and facts.text[:LONGEST_TEXT].lower().count("[image") >= PICTURES
        self._is_sent_as_bulk = sending.is_list_mail or sending.is_distributed or designed
        self._is_bulk = self._is_sent_as_bulk or sending.is_to_many or unsubscribes
        # Friends mention lists and mailings; their providers let everybody write.
        mentions = unsubscribes and sending.is_at_shared_domain and not sending.is_by_program
        self._went_to_many = self._is_sent_as_bulk or (unsubscribes and not mentions)

    @property
    def _is_pitch(self) -> bool:
        """Whether it is an unsolicited offer to the user."""
        return self._weight_of(PITCHES) >= PITCH_FROM and not self._sending.is_answer

    @property
    def is_newsletter(self) -> bool:
        """Whether one wrote it for many who only read: posts of a list's members are none."""
        if self._sending.is_discussion:
            return False
        return self._went_to_many or (self._sending.is_by_program and self._weight_of(PITCHES) >= 1)

    def _weight_of(self, group: str) -> int:
        return self._subject.weights.get(group, 0) + self._text.weights.get(group, 0)

    @property
    def is_from_person(self) -> bool:
        """Whether it is from a known contact, an answer to the user, or from a person to the user and few others.

        A letter to others counts too: it came by Bcc, or by an address of the user's that is not known here.
        """
        if self._facts.sender in self._known.contacts:
            return True
        if self._went_to_many or self._sending.is_to_many or self._sending.is_by_program or self._is_pitch:
            return False
        if self._sending.is_to_user or self._sending.answers_user:
            return True
        return self._sending.is_to_others and len(_QUOTED.split(self._facts.text, 1)[0]) >= LETTER

    def topics(self) -> set[str]:
        """The categories that the message is about."""
        return {name for name in WORDS if self._is_about(name)}

    def _is_about(self, name: str) -> bool:
        """Weigh the subject, the text up to a limit, and the sender as a plain word."""
        if self._is_bulk:
            return self._proves(name)
        return self._notifies(name) if self._sending.is_by_program else self._is_written_about(name)

    def _proves(self, name: str) -> bool:
        """Bulk mail needs more than words that advertisements use too: a proof that it concerns the user.

        Notices of programs offer to unsubscribe as well: one that names the matter in the subject proves enough.
        """
        subject, text = self._weights(name)
        if not subject:
            return False
        if self._sending.is_by_program and not (self._is_sent_as_bulk or self._promotion()):
            return self._subject.weight(name) >= PLAIN
        promotes = 2 * (PROMOTES in self._subject.weights) + (PROMOTES in self._text.weights)
        score = min(subject, MOST_OF_SUBJECT) + min(text, MOST_OF_TEXT) - promotes
        return score >= BULK and (self._subject.proves(name) or self._text.proves(name))

    def _is_written_about(self, name: str) -> bool:
        """People mention bills, doctors and hotels in passing: the subject names the matter, or the text says much."""
        subject, text = self._weights(name)
        if subject:
            return min(subject, MOST_OF_SUBJECT) + min(text, MOST_OF_TEXT) - self._promotion() >= FROM_PERSON
        if fits_sender(name, self._facts.domain, self._facts.domain) and self._text.strong(name):
            return text >= FROM_PERSON
        return text >= FROM_PERSON_BESIDES and self._text.strong(name) >= STRONG_BESIDES

    def _notifies(self, name: str) -> bool:
        """Programs and firms write about one matter: a word that names it is enough, or a sender of the category."""
        subject, text = self._weights(name)
        score = min(subject, MOST_OF_SUBJECT) + min(text, MOST_OF_TEXT) - self._promotion()
        others = self._others(name)
        if score <= 0 and others >= STRONG:
            return False
        if score >= FROM_PROGRAM and (subject or score >= STRONG or others < STRONG):
            return True
        local, sender = self._sending.local, self._sending.name
        if fits_sender(name, sender.replace(f"{local}@", ""), self._facts.domain):
            return score + PLAIN >= FROM_PROGRAM
        if (not subject and score < STRONG <= others) or (score <= 0 and others):
            return False
        return score + PLAIN * fits(name, f"{local}@") >= FROM_PROGRAM

    def _promotion(self) -> int:
        """How much less the words of an advertisement are worth."""
        return 2 * (PROMOTES in self._subject.weights) + (self._text.weights.get(PROMOTES, 0) >= ADVERTISES)

    def _weights(self, name: str) -> tuple[int, int]:
        """The weights of subject and text. Shared words count only if no other category has better ones."""
        subject, text = self._subject.weight(name), self._text.weight(name)
        if self._totals[name] < PLAIN <= self._others(name):
            return subject, text
        return subject + self._subject.shared(name), text + self._text.shared(name)

    def _others(self, name: str) -> int:
        """How much the words say for another category."""
        return max(total for other, total in self._totals.items() if other != name)


def _about(name: str, *smart: str) -> Category:
    """A category recognized by its words. `smart` are Gmail's own categories, in which much of this mail is.

    In bulk mail only proof that it concerns the user is searched: the check refuses bulk mail without it.
    """
    words = WORDS[name]
    named = _searches("", f"{words.strong}, {words.plain}", narrow=True)
    weak = _searches("subject:", words.weak, narrow=True)
    senders = _searches("from:", f"{words.senders}, {words.domains}", narrow=True)
    gmails = (Search("category:", each) for each in smart)
    return Category(name, (*gmails, *_searches("", words.proof), *named, *weak, *senders))


def _searches(operator: str, words: str, narrow: bool = False) -> list[Search]:
    found = dict.fromkeys(term.strip("@") for term in terms(words))
    return [Search(operator, term if re.fullmatch(r"\w+", term) else f'"{term}"', narrow) for term in found]


_PEOPLE = (
    "-category:promotions -category:social -category:forums -from:(noreply OR no-reply OR donotreply OR do-not-reply"
    " OR notifications OR mailer-daemon)"
)
_PERSONAL = (
    "({to:{user} cc:{user}} " + _PEOPLE + ")",
    "(-to:{user} -cc:{user} -category:updates " + _PEOPLE + ")",
)
CATEGORIES: dict[str, Category] = {
    category.name: category
    for category in (
        _about("finance", "updates", "purchases"),
        _about("health", "updates"),
        Category("relationship", tuple(Search("", each) for each in _PERSONAL)),
        _about("travel", "updates", "reservations"),
        Category(
            "newsletters",
            (
                *(Search("category:", name) for name in ("promotions", "forums")),
                Search("", "(-to:{user} -cc:{user} -category:social)"),
                *_searches("", f"{UNSUBSCRIBE}, {PITCH}"),
                *_searches("from:", "newsletter, newsletters, news, digest, feeds, rssfeeds, offers, deals, marketing"),
            ),
        ),
    )
}
