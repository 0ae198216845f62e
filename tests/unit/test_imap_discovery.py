"""Which servers are tried for a mail address, and in which order."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from postroom.core.errors import BadInput, PostroomError
from postroom.mailboxes.imap.discovery import ServiceRecord, candidates_for, domain_of, find_server
from postroom.mailboxes.imap.errors import Unreachable
from postroom.mailboxes.imap.presets import PRESETS, files_copies, preset_for, preset_of_hosts
from postroom.mailboxes.imap.wire import Endpoint, is_loopback
from support.patience import PATIENCE_S


@dataclass
class Zone:
    """The DNS of one test."""

    services_by_name: dict[str, list[ServiceRecord]] = field(default_factory=dict[str, list[ServiceRecord]])
    hosts: list[str] = field(default_factory=list[str])
    fails: bool = False

    async def services(self, name: str) -> Sequence[ServiceRecord]:
        if self.fails:
            raise PostroomError("the DNS failed")
        return self.services_by_name.get(name, [])

    async def mail_hosts(self, domain: str) -> Sequence[str]:
        if self.fails:
            raise PostroomError("the DNS failed")
        return self.hosts


async def endpoints(domain: str, zone: Zone) -> list[Endpoint]:
    return [each.imap for each in await candidates_for(domain, zone)]


class AllAtOnce(Zone):
    """Answers a question when all others were asked too."""

    asked = 0

    def __init__(self) -> None:
        super().__init__()
        self.everything = asyncio.Event()

    async def services(self, name: str) -> Sequence[ServiceRecord]:
        await self._ask()
        return []

    async def mail_hosts(self, domain: str) -> Sequence[str]:
        await self._ask()
        return []

    async def _ask(self) -> None:
        self.asked += 1
        if self.asked == 5:
            self.everything.set()
        async with asyncio.timeout(PATIENCE_S):
            await self.everything.wait()


async def test_a_dns_that_does_not_answer_is_waited_for_once_not_for_each_question() -> None:
    assert await candidates_for("ada.example", AllAtOnce())


async def test_a_large_provider_is_known_without_a_question() -> None:
    (only,) = await candidates_for("gmail.com", Zone(fails=True))
    assert (only.imap, only.origin) == (Endpoint("imap.gmail.com", 993), "preset")
    assert only.preset is not None
    assert "app password" in only.preset.password


async def test_a_domain_of_ones_own_at_a_large_provider_is_known_by_who_receives_its_mail() -> None:
    zone = Zone(hosts=["IN1-smtp.MessagingEngine.com.", "in2-smtp.messagingengine.com."])
    first = (await candidates_for("ada.example", zone))[0]
    assert first.imap == Endpoint("imap.fastmail.com", 993)


async def test_a_host_that_only_ends_alike_is_no_provider() -> None:
    assert preset_of_hosts(("mx.notgoogle.com",)) is None
    assert preset_of_hosts(("google.com.attacker.example",)) is None


async def test_records_come_in_their_order_and_tls_from_the_first_byte_comes_first() -> None:
    zone = Zone(
        {
            "_imap._tcp.ada.example": [ServiceRecord(0, 1, 143, "early.ada.example.")],
            "_imaps._tcp.ada.example": [
                ServiceRecord(20, 1, 993, "third.ada.example"),
                ServiceRecord(10, 1, 993, "second.ada.example"),
                ServiceRecord(10, 5, 9993, "First.Ada.Example."),
            ],
            "_submissions._tcp.ada.example": [ServiceRecord(0, 0, 465, "out.ada.example")],
        }
    )
    found = await candidates_for("ada.example", zone)
    assert [each.imap for each in found[:4]] == [
        Endpoint("first.ada.example", 9993),
        Endpoint("second.ada.example", 993),
        Endpoint("third.ada.example", 993),
        Endpoint("early.ada.example", 143, "starttls"),
    ]
    assert found[0].submission == (Endpoint("out.ada.example", 465),)
    assert not any(each.is_foreign for each in found)


async def test_a_record_that_names_a_host_elsewhere_is_marked_for_the_user_to_confirm() -> None:
    records = [ServiceRecord(0, 0, 993, "imap.elsewhere.example"), ServiceRecord(1, 0, 993, "notada.example")]
    found = await candidates_for("ada.example", Zone({"_imaps._tcp.ada.example": records}))
    assert [each.is_foreign for each in found[:2]] == [True, True]


async def test_a_record_that_says_there_is_no_such_service_is_believed() -> None:
    zone = Zone({"_imaps._tcp.ada.example": [ServiceRecord(0, 0, 0, ".")]})
    assert {each.origin for each in await candidates_for("ada.example", zone)} == {"guess"}


async def test_a_flood_of_records_is_cut() -> None:
    records = [ServiceRecord(0, 0, 993, f"h{number}.ada.example") for number in range(1_000)]
    found = await candidates_for("ada.example", Zone({"_imaps._tcp.ada.example": records}))
    assert len([each for each in found if each.origin == "records"]) == 4


async def test_without_an_answer_of_the_dns_the_usual_names_are_left_and_never_a_connection_without_tls() -> None:
    found = await candidates_for("ada.example", Zone(fails=True))
    assert [(each.imap.host, each.imap.port) for each in found[:3]] == [
        ("imap.ada.example", 993),
        ("mail.ada.example", 993),
        ("ada.example", 993),
    ]
    assert {each.imap.security for each in found} == {"tls", "starttls"}


async def test_servers_are_tried_until_one_answers_and_the_others_are_told() -> None:
    tried: list[str] = []

    async def attempt(endpoint: Endpoint) -> None:
        tried.append(endpoint.host)
        if endpoint.host != "mail.ada.example":
            raise Unreachable(endpoint.host, "it did not answer")

    found = await find_server("ada.example", Zone(), attempt)
    assert found.found is not None
    assert found.found.imap == Endpoint("mail.ada.example", 993)
    assert tried == ["imap.ada.example", "mail.ada.example"]
    (told,) = found.attempts
    assert told.endpoint.host == "imap.ada.example"
    assert "did not answer" in told.problem


async def test_where_none_answers_all_are_told() -> None:
    async def attempt(endpoint: Endpoint) -> None:
        raise Unreachable(endpoint.host, "it did not answer")

    found = await find_server("ada.example", Zone(), attempt)
    assert found.found is None
    assert len(found.attempts) == 6


@pytest.mark.parametrize(
    ("address", "domain"),
    [
        ("ada@example.com", "example.com"),
        (" Ada@EXAMPLE.com. ", "example.com"),
        ("a@b@bücher.example", "xn--bcher-kva.example"),
    ],
)
def test_the_domain_is_spelled_as_the_dns_spells_it(address: str, domain: str) -> None:
    assert domain_of(address) == domain


@pytest.mark.parametrize(
    "address", ["", "ada", "ada@", "@", "ada@localhost", "ada@" + "x" * 70 + ".example", "ada@a..b"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(BadInput, match="is no mail address"):
        domain_of(address)


def test_presets_name_each_domain_once_and_none_without_tls() -> None:
    domains = [domain for each in PRESETS for domain in each.domains]
    assert len(domains) == len(set(domains))
    assert len(PRESETS) >= 10
    for each in PRESETS:
        assert each.password.endswith(".")
        assert all(preset_for(domain) is each for domain in each.domains)
        for endpoint in (each.imap, each.submission):
            assert endpoint.security in ("tls", "starttls")
            assert is_loopback(endpoint.host) == (each.name == "Proton Mail Bridge")


@pytest.mark.parametrize(
    ("host", "does"),
    [
        ("smtp.gmail.com", True),
        ("SMTP.office365.com", True),
        ("smtp.fastmail.com", False),
        ("mail.cellar.example", False),
    ],
)
def test_servers_that_file_a_copy_of_sent_mail_are_known_by_their_names(host: str, does: bool) -> None:
    assert files_copies(host) is does
