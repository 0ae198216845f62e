"""Compose what watches senders: their scores, and the notices to the operator."""

from types import TracebackType
from typing import Self

import httpx2

from postroom.outbound.queue.scoring import Channel, Scoring
from postroom.settings.reading import Settings
from postroom.store.engine.clock import clock_of
from postroom.store.engine.database import Database
from postroom.system.wall_clock import wall_clock
from postroom.triage.act.webhook import SignedWebhook
from postroom.triage.handlers.sender_notify import NoticeAddresses, SenderNotify


class SenderWatch:
    """The scoring of senders in one process, and the handler of its notices."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings.outbound
        self._database = database
        self._http = httpx2.AsyncClient()

    def scoring(self) -> Scoring:
        outbound = self._settings
        channels: list[Channel] = []
        if outbound.notice_to is not None:
            channels.append("mail")
        if outbound.notice_webhook_url is not None:
            channels.append("webhook")
        detection, policy = outbound.abuse_detection, outbound.abuse_policy
        return Scoring(self._database, policy, detection, channels, outbound.scoring_period, clock_of(self._database))

    def handler(self) -> SenderNotify:
        outbound, webhook, addresses = self._settings, None, None
        if outbound.notice_webhook_url is not None and outbound.notice_webhook_secret is not None:
            secret = outbound.notice_webhook_secret.get_secret_value()
            about = ("notices about senders", "outbound.notice_webhook_url")
            webhook = SignedWebhook(self._http, outbound.notice_webhook_url, secret, wall_clock, *about)
        if outbound.notice_to is not None and outbound.notice_from is not None:
            addresses = NoticeAddresses(outbound.notice_to, outbound.notice_from)
        return SenderNotify(webhook, addresses)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()
