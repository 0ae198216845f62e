"""One leased message made a row, as the dispatcher does with many."""

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from postroom.core.jobs.job import NewJob
from postroom.core.mail.message import MailContent
from postroom.store.engine.database import Transaction
from postroom.store.intake.inbox import LeasedMessage
from postroom.store.mail.mail import Account, NewMessage, store_messages


def store_message(
    leased: LeasedMessage,
    account: Account,
    ids: tuple[UUID, UUID],
    content: MailContent,
    classify: Callable[[UUID], NewJob],
    now: datetime,
) -> Transaction[None]:
    return store_messages(
        [NewMessage(leased, account, ids, content, ids[1], classify, is_on_demand=leased.envelope.is_on_demand)], now
    )
