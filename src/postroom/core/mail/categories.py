"""The categories of mail that a backfill can fetch: searches at the provider, and a check of each message.

The searches are broad, so that little is missed; the check decides. A message may be in several categories, or in none.
`finance`, `health` and `travel` are told by their words (core/mail/evidence.py), `relationship` and `newsletters` by
who sent the message and to whom.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from postroom.core.errors import BadInput
from postroom.core.mail.category_words import LIST_HEADERS, PLAIN, PROGRAMS, SENDING_SERVICES, STRONG, UNSUBSCRIBE
from postroom.core.mail.evidence import (
    LONGEST_SENDER,
    LONGEST_SUBJECT,
    PROMOTES,
    UNSUBSCRIBES,
    WORDS,
    fits,
    fits_sender,
    found_in_subject,
    found_in_text,
    plain_words,
    terms,
)
from postroom.core.mail.headers import Headers
from postroom.core.mail.ingestion import IngestionFacts
from postroom.core.mail.tiers import Known, addressed_to_user, is_bulk, message_ids
from postroom.core.suggestions import did_you_mean

LONGEST_QUERY = 1_500
# The most that a subject and a text weigh, and the score that each kind of mail needs to be in a category.
MOST_OF_SUBJECT, MOST_OF_TEXT = 4, 4
FROM_PROGRAM, FROM_PERSON, FROM_PERSON_BESIDES, BULK = 2, 3, 4, 4

_PROGRAMS = frozenset(terms(PROGRAMS))
_SENDING_SERVICES = frozenset(terms(SENDING_SERVICES))
_LISTS = frozenset(terms(LIST_HEADERS))
_NEWSLETTER = re.compile(
    r"(?<![a-z])(?:newsletters?|news|digest|feeds?|rss(?:feeds?)?|mailings?|marketing|offers|deals|promo(?:tion)?s?)"
    r"(?![a-z])"
)
_NO_REPLY = re.compile(
    r"(?:no|do[._-]?not|never|ne|keine|non)[._-]?(?:pas[._-]?)?(?:reply|answer|antwort|respond|repond|rispond)"
)
_AUTOMATIC = re.compile(
    r"\s*(?:automatic reply|auto[- ]?reply|out of office|automatische antwort|abwesenheit|réponse automatique"
    r"|respuesta automática|automatisch antwoord|risposta automatica)",
    re.IGNORECASE,
)
_NARROW = "-category:promotions -category:forums -category:social"
_LIST_TAG = re.compile(r"\s*(?:(?:re|aw|fwd?)\s*:\s*){0,5}\[[^\]]{2,40}\]", re.IGNORECASE)
_LOCAL_WORD = re.compile(r"[a-z]+")


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
    if seen.is_from_person:
        found.add("relationship")
    if seen.is_newsletter or (seen.is_bulk and not found):
        found.add("newsletters")
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
            and len(_joined([*queries[-1], search])) <= LONGEST_QUERY
        ):
            queries[-1].append(search)
        else:
            queries.append([search])
    return [_joined(each) for each in queries]


def _joined(searches: Sequence[Search]) -> str:
    """One search for any of these: `((order OR subject:(invoice OR receipt)) -category:promotions)`."""
    groups = groupby(searches, key=lambda search: search.operator)
    parts = [(operator, " OR ".join(search.term for search in group)) for operator, group in groups]
    found = f"({' OR '.join(f'{operator}({terms})' if operator else terms for operator, terms in parts)})"
    return f"({found} {_NARROW})" if searches[0].narrow else found


class _Seen:
    """A message while its categories are determined."""

    def __init__(self, facts: IngestionFacts, known: Known) -> None:
        self._known, self._facts = known, facts
        self._headers = _by_name(facts.headers)
        self._sender = (" ".join(self._headers.get("from", ())) or facts.sender)[:LONGEST_SENDER].lower()
        self._local = facts.sender.rpartition("@")[0][:LONGEST_SENDER]
        subject = " ".join(self._headers.get("subject", ()))[:LONGEST_SUBJECT]
        self._subject = found_in_subject(subject)
        self._is_automatic, self._is_tagged = bool(_AUTOMATIC.match(subject)), bool(_LIST_TAG.match(subject))
        self.is_newsletter = self._is_newsletter()
        needed = not self.is_newsletter or any(
            self._subject.weight(name) or self._subject.shared(name) for name in WORDS
        )
        self._text = found_in_text(facts.text if needed else "", self._subject)
        self._totals = {name: self._subject.weight(name) + self._text.weight(name) for name in WORDS}
        is_reply = "in-reply-to" in self._headers or "references" in self._headers
        self.is_bulk = self.is_newsletter or (UNSUBSCRIBES in self._text.weights and not is_reply)
        self._is_from_program = self._was_sent_by_program()

    def _is_newsletter(self) -> bool:
        """Whether the headers or the sender say that it went to many."""
        if not _LISTS.isdisjoint(self._headers) or ("precedence" in self._headers and is_bulk(self._facts.headers)):
            return True
        if _NEWSLETTER.search(self._local) or _NEWSLETTER.search(self._facts.domain[:LONGEST_SENDER]):
            return True
        return self._is_tagged and not addressed_to_user(self._facts.headers, self._known)

    def _was_sent_by_program(self) -> bool:
        if any(value.strip().lower() != "no" for value in self._headers.get("auto-submitted", ())):
            return True
        if not self._local or _NO_REPLY.search(self._local) or not _SENDING_SERVICES.isdisjoint(self._headers):
            return True
        if self._is_automatic or not _PROGRAMS.isdisjoint(_LOCAL_WORD.findall(self._local)):
            return True
        return self._is_from_organisation()

    def _is_from_organisation(self) -> bool:
        """Whether the sender's name is that of a firm, and not that of the mailbox."""
        name = [word for word in plain_words(self._sender.rpartition("<")[0]) if len(word) > 1]
        domain, words = self._facts.domain, _LOCAL_WORD.findall(self._local)
        if name and all(word in domain for word in name):
            return True
        if any(word in words or self._local.endswith(word) or self._local[:-1] == word for word in name):
            return False
        if any(len(word) > 3 and word in domain for word in name) or any(
            len(label) > 4 and label in "".join(name) for label in domain.split(".")
        ):
            return True
        return any(fits(category, f"{self._local}@{domain}") for category in WORDS)

    @property
    def is_from_person(self) -> bool:
        """Whether it is from a known contact, an answer to the user, or from a person to the user."""
        if self._facts.sender in self._known.contacts:
            return True
        if self.is_bulk or self._is_from_program:
            return False
        answered = (id for value in self._headers.get("in-reply-to", ()) for id in message_ids(value))
        return addressed_to_user(self._facts.headers, self._known) or any(id in self._known.sent_ids for id in answered)

    def topics(self) -> set[str]:
        """The categories that the message is about."""
        return {name for name in WORDS if self._is_about(name)}

    def _is_about(self, name: str) -> bool:
        """Weigh the subject, the text up to a limit, and the sender as a plain word.

        Bulk mail needs more than words that advertisements use too: a proof that it concerns the user.
        """
        subject, text = self._weights(name)
        if not subject and (self.is_bulk or not (text or self._is_from_program)):
            return False
        score = min(subject, MOST_OF_SUBJECT) + min(text, MOST_OF_TEXT)
        if not (self.is_bulk or self._is_from_program):
            return score >= (FROM_PERSON if subject else FROM_PERSON_BESIDES)
        score -= 2 * (PROMOTES in self._subject.weights)
        if self.is_bulk:
            score -= PROMOTES in self._text.weights
            return score >= BULK and (self._subject.proves(name) or self._text.proves(name))
        others = self._others(name)
        if score <= 0 and others >= STRONG:
            return False
        if score >= FROM_PROGRAM and (subject or score >= STRONG or others < STRONG):
            return True
        if fits_sender(name, self._sender.replace(f"{self._local}@", ""), self._facts.domain):
            return score + PLAIN >= FROM_PROGRAM
        if (not subject and score < STRONG <= others) or (score <= 0 and others):
            return False
        return score + PLAIN * fits(name, f"{self._local}@") >= FROM_PROGRAM

    def _weights(self, name: str) -> tuple[int, int]:
        """The weights of subject and text. Shared words count only if no other category has better ones."""
        subject, text = self._subject.weight(name), self._text.weight(name)
        if self._totals[name] < PLAIN <= self._others(name):
            return subject, text
        return subject + self._subject.shared(name), text + self._text.shared(name)

    def _others(self, name: str) -> int:
        """How much the words say for another category."""
        return max(total for other, total in self._totals.items() if other != name)


def _by_name(headers: Headers) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name.lower(), []).append(value)
    return found


def _about(name: str, *smart: str) -> Category:
    """A category that is told by its words. `smart` are Gmail's own categories, in which much of this mail is.

    In bulk mail only what proves that it concerns the user is searched: without that, the check would refuse it.
    """
    words = WORDS[name]
    named = _searches("", f"{words.strong}, {words.plain}", narrow=True)
    senders = _searches("from:", f"{words.senders}, {words.domains}", narrow=True)
    gmails = (Search("category:", each) for each in smart)
    return Category(name, (*gmails, *_searches("", words.proof), *named, *senders))


def _searches(operator: str, words: str, narrow: bool = False) -> list[Search]:
    found = dict.fromkeys(term.strip("@") for term in terms(words))
    return [Search(operator, term if re.fullmatch(r"\w+", term) else f'"{term}"', narrow) for term in found]


_PERSONAL = (
    "(to:{user} -category:promotions -category:social -category:forums -from:(noreply OR no-reply OR donotreply"
    " OR do-not-reply OR notifications OR mailer-daemon))"
)
CATEGORIES: dict[str, Category] = {
    category.name: category
    for category in (
        _about("finance", "updates", "purchases"),
        _about("health", "updates"),
        Category("relationship", (Search("", _PERSONAL),)),
        _about("travel", "updates", "reservations"),
        Category(
            "newsletters",
            (
                *(Search("category:", name) for name in ("promotions", "forums")),
                *_searches("", UNSUBSCRIBE),
                *_searches("from:", "newsletter, newsletters, news, digest, feeds, rssfeeds, offers, deals, marketing"),
            ),
        ),
    )
}
