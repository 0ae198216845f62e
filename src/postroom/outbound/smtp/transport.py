"""Delivers mail by SMTP: to the servers of each recipient's domain, or to a smart host.

deliver ─► sign ─► by destination ─► paused? ─► its turn? ─► a kept connection, or a new one ─► one transaction
                                     held       held         host by host, in order              an outcome each
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

import structlog

from postroom.core.outbound.destinations import (
    Address,
    DestinationPauses,
    MailHost,
    StsPolicy,
    literal_address,
    smtp_address,
)
from postroom.core.outbound.pacing import Feedback
from postroom.core.outbound.replies import Reply, asks_to_slow_down, found_out
from postroom.core.outbound.transport import Leaving, OutgoingMail, OutgoingRecipient, RecipientOutcome, decided
from postroom.outbound.smtp.connections import Connections, Key
from postroom.outbound.smtp.dkim import CannotSign, Signer
from postroom.outbound.smtp.dns import Dns
from postroom.outbound.smtp.errors import ConnectionLost, HostFailed, NoRoute, Unsendable
from postroom.outbound.smtp.lines import dot_stuffed, with_whole_line_ends
from postroom.outbound.smtp.mta_sts import StsCache, allows
from postroom.outbound.smtp.options import MOST_RECIPIENTS, SmtpOptions, TlsContexts
from postroom.outbound.smtp.pacing import Pacing, Turn
from postroom.outbound.smtp.routes import Routes
from postroom.outbound.smtp.session import ServerPlace, SmtpClientSession, SmtpCredentials, Tls, TlsFailed, open_session
from postroom.outbound.smtp.transaction import Envelope, EnvelopeRecipient

log = structlog.get_logger()

# Destinations of one mail that are served at the same time.
AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class _Delivery:
    """One mail for the recipients at one destination."""

    destination: str
    envelope: Envelope
    require_tls: bool
    recipients: tuple[EnvelopeRecipient, ...]


class SmtpTransport:
    """Lives as long as the process: it owns the kept connections and the pace of each destination."""

    def __init__(
        self,
        options: SmtpOptions,
        contexts: TlsContexts,
        dns: Dns,
        rng: Random,
        clock: Callable[[], float],
        *,
        sts: StsCache | None = None,
        signer: Signer | None = None,
        pauses: DestinationPauses | None = None,
    ) -> None:
        self._options = options
        self._contexts = contexts
        self._routes = Routes(dns, options, rng)
        self._sts = sts
        self._signer = signer
        self._pauses = pauses
        self._pacing = Pacing(options.pace, options.longest_wait_s, clock)
        self._connections = Connections(options.reuse, clock)

    async def deliver(
        self, mail: OutgoingMail, recipients: Sequence[OutgoingRecipient], leaving: Leaving
    ) -> list[RecipientOutcome]:
        """One outcome for each recipient, in the order of their positions."""
        addressed = [(each, smtp_address(each.address)) for each in recipients]
        outcomes = [
            decided(each.position, found_out("5.1.3", "this is no mail address", "local"))
            for each, address in addressed
            if address is None
        ]
        known = [
            EnvelopeRecipient(each.position, found, each.notify, each.original)
            for each, found in addressed
            if found is not None
        ]
        try:
            envelope = await self._envelope(mail)
        except Unsendable as error:
            outcomes += _all(known, error.reply)
        else:
            few = asyncio.Semaphore(AT_ONCE)
            deliveries = (self._deliver(each, leaving, few) for each in self._by_destination(mail, envelope, known))
            for found in await asyncio.gather(*deliveries):
                outcomes += found
        return sorted(outcomes, key=lambda outcome: outcome.position)

    async def close(self) -> None:
        await self._connections.close()

    async def _envelope(self, mail: OutgoingMail) -> Envelope:
        sender = smtp_address(mail.envelope_sender) if mail.envelope_sender else Address("", "")
        if sender is None:
            raise Unsendable(found_out("5.1.7", "its envelope sender is no mail address", "local"))
        content = with_whole_line_ends(mail.content)
        if self._signer is not None:
            try:
                content = await self._signer.signed(content, mail.envelope_sender)
            except CannotSign as error:
                raise Unsendable(found_out("4.3.5", str(error), "local")) from None
        return Envelope(
            str(sender) if mail.envelope_sender else "",
            dot_stuffed(content),
            len(content),
            is_8bit=not content.isascii(),
            needs_utf8=mail.options.smtputf8 or not sender.is_ascii,
            declared_8bit=mail.options.body_8bit,
            envelope_id=mail.options.envelope_id,
            return_full=mail.options.return_full,
        )

    def _by_destination(
        self, mail: OutgoingMail, envelope: Envelope, recipients: Sequence[EnvelopeRecipient]
    ) -> list[_Delivery]:
        """Recipients whose address needs SMTPUTF8 go by themselves: a server without it must not refuse the others."""
        smart_host = self._options.smart_host
        groups: dict[tuple[str, bool], list[EnvelopeRecipient]] = {}
        for each in recipients:
            destination = smart_host.host if smart_host is not None else each.address.destination
            groups.setdefault((destination, each.address.is_ascii), []).append(each)
        return [
            _Delivery(
                destination,
                envelope if is_ascii else replace(envelope, needs_utf8=True),
                mail.options.require_tls or self._options.require_tls,
                tuple(group),
            )
            for (destination, is_ascii), group in groups.items()
        ]

    async def _deliver(self, delivery: _Delivery, leaving: Leaving, few: asyncio.Semaphore) -> list[RecipientOutcome]:
        """The outcomes at one destination. An error of ours concerns these recipients only."""
        left: set[int] = set()

        async def noting(positions: Sequence[int]) -> None:
            await leaving(positions)
            left.update(positions)

        async with few:
            try:
                return await self._in_turn(delivery, noting)
            except Exception as error:
                log.error("smtp.broken", error=type(error).__name__)
                why = found_out("4.3.0", f"an error of ours: {type(error).__name__}", "local")
                return [
                    RecipientOutcome(each.position, "unknown" if each.position in left else "deferred", why)
                    for each in delivery.recipients
                ]

    async def _in_turn(self, delivery: _Delivery, leaving: Leaving) -> list[RecipientOutcome]:
        destination, recipients = delivery.destination, delivery.recipients
        turn = await self._pacing.begin(destination)
        if not isinstance(turn, Turn):
            return _held_outcomes(recipients, f"{destination} has as much mail under way as it takes", turn)
        outcomes: list[RecipientOutcome] = []
        try:
            for first in range(0, len(recipients), MOST_RECIPIENTS):
                outcomes += await self._transaction(delivery, recipients[first : first + MOST_RECIPIENTS], leaving)
        finally:
            turn.end(feedback_of(outcomes))
        return outcomes

    async def _transaction(
        self, delivery: _Delivery, recipients: Sequence[EnvelopeRecipient], leaving: Leaving
    ) -> list[RecipientOutcome]:
        """By a kept connection, or else by the first host that takes it."""
        policy = await self._policy(delivery.destination)
        key = Key(delivery.destination, self._demanded_tls(delivery, policy))
        while (kept := self._connections.take(key)) is not None:
            outcomes = await self._by_kept(key, kept, delivery.envelope, recipients, leaving)
            if outcomes is not None:
                return outcomes
        # Whoever lets the content leave asks again: a pause may begin between two mails of a connection.
        if self._pauses is not None and (reason := await self._pauses.reason(delivery.destination)) is not None:
            return _held_outcomes(recipients, f"mail to {delivery.destination} is paused: {reason}", None)
        failure, tried = found_out("4.4.1", "there is no server to connect to", "route"), 0
        try:
            async for place in self._places(delivery.destination, key.tls, policy):
                try:
                    session = await self._open(place)
                    self._connections.opened(session)
                    return await self._by(key, session, delivery.envelope, recipients, leaving)
                except (HostFailed, ConnectionLost) as error:
                    failure = error.reply
                tried += 1
                if tried == self._options.most_addresses:
                    break
        except NoRoute as error:
            failure = error.reply
        return _all(recipients, failure)

    async def _by_kept(
        self,
        key: Key,
        session: SmtpClientSession,
        envelope: Envelope,
        recipients: Sequence[EnvelopeRecipient],
        leaving: Leaving,
    ) -> list[RecipientOutcome] | None:
        """None if the server does not want to use the connection any longer, and nothing has left."""
        try:
            outcomes = await self._by(key, session, envelope, recipients, leaving)
        except ConnectionLost:
            return None
        return None if all(each.reply.code == 421 and each.reply.phase == "mail" for each in outcomes) else outcomes

    async def _by(
        self,
        key: Key,
        session: SmtpClientSession,
        envelope: Envelope,
        recipients: Sequence[EnvelopeRecipient],
        leaving: Leaving,
    ) -> list[RecipientOutcome]:
        tls = session.tls
        try:
            outcomes = await session.transact(envelope, recipients, leaving)
        except BaseException:
            self._connections.drop(session)
            raise
        self._connections.give_back(key, session)
        return [each._replace(tls=tls) for each in outcomes]

    async def _open(self, place: ServerPlace) -> SmtpClientSession:
        smart_host = self._options.smart_host
        credentials = None
        if smart_host is not None and smart_host.username is not None:
            credentials = SmtpCredentials(smart_host.username, smart_host.password or "")
        try:
            return await open_session(place, self._options, self._contexts, credentials)
        except TlsFailed:
            if place.tls != "opportunistic":
                raise
            return await open_session(place._replace(tls="none"), self._options, self._contexts, credentials)

    async def _policy(self, destination: str) -> StsPolicy | None:
        if self._sts is None or self._options.smart_host is not None or literal_address(destination) is not None:
            return None
        return await self._sts.policy(destination)

    def _demanded_tls(self, delivery: _Delivery, policy: StsPolicy | None) -> Tls:
        smart_host = self._options.smart_host
        if smart_host is not None and smart_host.tls == "implicit":
            return "implicit"
        if delivery.require_tls or (smart_host is not None and smart_host.tls == "required"):
            return "checked"
        return "checked" if policy is not None and policy.mode == "enforce" else "opportunistic"

    async def _places(self, destination: str, tls: Tls, policy: StsPolicy | None) -> AsyncIterator[ServerPlace]:
        """Where to connect, in order. Raises NoRoute."""
        smart_host = self._options.smart_host
        if smart_host is not None:
            yield ServerPlace(smart_host.host, smart_host.host, smart_host.port, tls)
            return
        hosts = await self._routes.hosts(destination)
        if policy is not None:
            hosts = _allowed_hosts(hosts, policy, destination)
        async for name, address in self._routes.addresses(hosts):
            yield ServerPlace(name if literal_address(name) is None else address, address, self._options.port, tls)


def _allowed_hosts(hosts: list[MailHost], policy: StsPolicy, destination: str) -> list[MailHost]:
    """The hosts that the policy allows. While it is being tested, all of them. Raises NoRoute."""
    named = [host for host in hosts if allows(policy, host.name)]
    if len(named) < len(hosts):
        log.warning("smtp.mta_sts", destination=destination, mode=policy.mode)
    if policy.mode != "enforce":
        return hosts
    if not named:
        why = f"the MTA-STS policy of {destination} names none of its mail servers"
        raise NoRoute(found_out("4.7.5", why, "route"))
    return named


def feedback_of(outcomes: Sequence[RecipientOutcome]) -> Feedback:
    """Derive feedback for the pace of a destination from the outcomes of a transaction."""
    if any(_is_congestion(each) for each in outcomes):
        return "congested"
    return "taken" if any(each.result == "sent" for each in outcomes) else "neither"


def _is_congestion(outcome: RecipientOutcome) -> bool:
    if outcome.result not in ("deferred", "unknown") or outcome.reply.phase in ("route", "local"):
        return False
    return asks_to_slow_down(outcome.reply)


def _all(recipients: Sequence[EnvelopeRecipient], reply: Reply) -> list[RecipientOutcome]:
    return [decided(each.position, reply) for each in recipients]


def _held_outcomes(recipients: Sequence[EnvelopeRecipient], why: str, seconds: float | None) -> list[RecipientOutcome]:
    wait = None if seconds is None else timedelta(seconds=max(seconds, 1.0))
    reply = found_out("4.3.2", why, "local")
    return [RecipientOutcome(each.position, "held", reply, None, wait) for each in recipients]
