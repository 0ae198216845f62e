"""Who sent a message, and to whom: a person, a program or a firm; to the user, to a few or to many; on a list or not.

It looks at the headers alone, and every step is linear in a bounded part of them.
"""

import re
from collections.abc import Mapping

from postroom.core.mail.addresses import addresses
from postroom.core.mail.category_words import LIST_HEADERS, PROGRAMS, SENDING_SERVICES
from postroom.core.mail.evidence import LONGEST_SENDER, LONGEST_SUBJECT, WORDS, fits, plain_words, terms
from postroom.core.mail.ingestion import IngestionFacts
from postroom.core.mail.tiers import Known, is_bulk, message_ids

# Anybody may have an address at these domains, so they say nothing about the sender.
SHARED_DOMAINS = frozenset(
    {
        *("gmail.com", "googlemail.com", "outlook.com", "hotmail.com", "live.com", "yahoo.com", "icloud.com", "me.com"),
        *("aol.com", "gmx.de", "gmx.net", "web.de", "t-online.de", "proton.me", "protonmail.com", "mail.ru"),
        *(
            "yandex.ru",
            "qq.com",
            "163.com",
            "msn.com",
            "juno.com",
            "mac.com",
            "comcast.net",
            "att.net",
            "earthlink.net",
        ),
        *("freenet.de", "orange.fr", "wanadoo.fr", "libero.it", "ziggo.nl", "btinternet.com"),
    }
)
# A letter of a colleague to more people than this is an announcement; other people write to a circle of friends.
MOST_COLLEAGUES, MOST_FRIENDS = 4, 60

_PROGRAMS = frozenset(terms(PROGRAMS))
_PROGRAM_ENDINGS = ("info", "news", "service", "services", "support", "updates", "alerts", "survey", "newsletter")
_PROGRAM_HOSTS = frozenset(
    {"response", "marketing", "news", "newsletter", "reply", "bounce", "campaign", "promo", "offers"}
)
_SENDING_SERVICES = frozenset(terms(SENDING_SERVICES))
_LISTS = frozenset(terms(LIST_HEADERS))
_DISCUSSIONS = frozenset({"list-post", "x-mailman-version", "mailing-list", "x-mailing-list"})
_ANSWERS = frozenset({"in-reply-to", "references"})
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
_LIST_TAG = re.compile(r"\s*(?:(?:re|aw|fwd?)\s*:\s*){0,5}\[([^\]]{2,40})\]", re.IGNORECASE)
_ANSWER = re.compile(r"\s*(?:\[[^\]]{2,40}\]\s*)?(?:re|aw|fwd?|wg|sv|antw)(?:\[\d+\])?\s*:", re.IGNORECASE)
_LOCAL_WORD = re.compile(r"[a-z]+")
_MACHINE_MADE = re.compile(r"\d{5}")


class Sending:
    """The sender, the recipients and the road of a message, as far as its headers tell."""

    def __init__(self, facts: IngestionFacts, known: Known) -> None:
        self._facts, self._known = facts, known
        self.headers = _by_name(facts)
        self.name = (" ".join(self.headers.get("from", ())) or facts.sender)[:LONGEST_SENDER].lower()
        self.local = facts.sender.rpartition("@")[0][:LONGEST_SENDER]
        self.subject = " ".join(self.headers.get("subject", ()))[:LONGEST_SUBJECT]
        self._to = frozenset(address for value in self.headers.get("to", ()) for address in addresses(value))
        self._cc = frozenset(address for value in self.headers.get("cc", ()) for address in addresses(value))
        self.is_answer = not _ANSWERS.isdisjoint(self.headers) or bool(_ANSWER.match(self.subject))
        self.is_list_mail = self._is_list_mail()
        self.is_discussion = self._is_discussion()
        self.is_by_program = self._was_sent_by_program()

    @property
    def is_to_user(self) -> bool:
        """Whether the user is in To or Cc."""
        return not self._known.user_addresses.isdisjoint(self._to | self._cc)

    @property
    def is_to_many(self) -> bool:
        """Whether it names more people than a correspondence has."""
        return len(self._to) > (MOST_COLLEAGUES if self._is_from_colleague else MOST_FRIENDS)

    @property
    def is_to_others(self) -> bool:
        """Whether it names a few people, none of them the user or the sender, and no group."""
        people = (_PROGRAMS.isdisjoint(_LOCAL_WORD.findall(address.rpartition("@")[0])) for address in self._to)
        if not self._to or self._facts.sender in self._known.user_addresses | self._to:
            return False
        return not self.is_to_user and not self.is_to_many and all(people)

    @property
    def is_distributed(self) -> bool:
        """Whether it went to recipients whom it does not name: it names none, the sender, or the sender's own house.

        Without a Message-ID not all headers are known, and an absent To says nothing.
        """
        if self.is_to_user or self.is_answer or self.is_at_shared_domain:
            return False
        if not self._to:
            return not self._cc and ("to" in self.headers or "message-id" in self.headers)
        if self._is_from_colleague:
            return False
        return len(self._to) > MOST_COLLEAGUES or any(_domain_of(address) == self._domain for address in self._to)

    @property
    def answers_user(self) -> bool:
        answered = (id for value in self.headers.get("in-reply-to", ()) for id in message_ids(value))
        return any(id in self._known.sent_ids for id in answered)

    @property
    def is_at_shared_domain(self) -> bool:
        return self._domain in SHARED_DOMAINS

    @property
    def _is_from_colleague(self) -> bool:
        if self.is_at_shared_domain:
            return False
        return self._domain in map(_domain_of, self._known.user_addresses)

    @property
    def _domain(self) -> str:
        return self._facts.domain[:LONGEST_SENDER]

    def _is_list_mail(self) -> bool:
        """Whether the headers or the sender say that it went to many."""
        if not _LISTS.isdisjoint(self.headers) or ("precedence" in self.headers and is_bulk(self._facts.headers)):
            return True
        if _NEWSLETTER.search(self.local) or _NEWSLETTER.search(self._domain):
            return True
        return bool(_LIST_TAG.match(self.subject)) and self._known.user_addresses.isdisjoint(self._to)

    def _is_discussion(self) -> bool:
        """Whether it is a post to a list on which its members write: those are no newsletters."""
        if not self.is_list_mail or _NEWSLETTER.search(self.local):
            return False
        if self.is_answer or not _DISCUSSIONS.isdisjoint(self.headers):
            return True
        tag = _LIST_TAG.match(self.subject)
        return tag is not None and tag[1].lower() in {address.rpartition("@")[0] for address in self._to}

    def _was_sent_by_program(self) -> bool:
        if any(value.strip().lower() != "no" for value in self.headers.get("auto-submitted", ())):
            return True
        if not self.local or _NO_REPLY.search(self.local) or not _SENDING_SERVICES.isdisjoint(self.headers):
            return True
        if _AUTOMATIC.match(self.subject) or not _PROGRAMS.isdisjoint(_LOCAL_WORD.findall(self.local)):
            return True
        if self.local.endswith(_PROGRAM_ENDINGS) or _MACHINE_MADE.search(self.local):
            return True
        host, _, rest = self._domain.partition(".")
        return (host in _PROGRAM_HOSTS and "." in rest) or self._is_from_organisation()

    def _is_from_organisation(self) -> bool:
        """Whether the sender's name is that of a firm, and not that of the mailbox. The domain alone tells nothing."""
        name = [word for word in plain_words(self.name.rpartition("<")[0]) if len(word) > 1]
        words = _LOCAL_WORD.findall(self.local)
        is_of_mailbox = any(word in words or self.local.endswith(word) or self.local[:-1] == word for word in name)
        if name and all(word in self._domain for word in name):
            return len(name) == 1 or not is_of_mailbox
        if is_of_mailbox:
            return False
        if any(len(word) > 3 and word in self._domain for word in name) or any(
            len(label) > 4 and label in "".join(name) for label in self._domain.split(".")
        ):
            return True
        return any(fits(category, f"{self.local}@") for category in WORDS)


def _domain_of(address: str) -> str:
    return address.rpartition("@")[2]


def _by_name(facts: IngestionFacts) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in facts.headers:
        found.setdefault(name.lower(), []).append(value)
    return found
