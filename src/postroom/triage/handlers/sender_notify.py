"""The `sender.notify` job: tell people, on one channel, that a sender was throttled."""

from dataclasses import dataclass
from typing import NamedTuple

from postroom.core.errors import Fatal
from postroom.jobs.run import JobRun
from postroom.outbound.queue.notices import notice_mail
from postroom.store.engine.ids import new_id
from postroom.store.outbound.sender_notices import queue_notice
from postroom.system.wall_clock import Clock, wall_clock
from postroom.triage.act.webhook import SignedWebhook
from postroom.triage.handlers.payload import text_field

EVENT = "sender.throttled"


class NoticeAddresses(NamedTuple):
    """To whom notices are mailed, and from which address."""

    to: str
    own: str


@dataclass(eq=False, slots=True)
class SenderNotify:
    """A channel that is no longer set up is told nothing, and its job ends as failed."""

    webhook: SignedWebhook | None
    addresses: NoticeAddresses | None
    clock: Clock = wall_clock

    async def __call__(self, run: JobRun) -> None:
        notice = {name: value for name, value in run.job.payload.items() if name != "channel"}
        match text_field(run.job, "channel"):
            case "mail" if self.addresses is not None:
                now = self.clock()
                mail = notice_mail(new_id(), notice, *self.addresses, now)
                await run.complete(queue_notice(run.job, mail, now))
            case "webhook" if self.webhook is not None:
                id = f"{EVENT}:{run.job.id}"
                await self.webhook.deliver(id, {"id": id, "event": EVENT, **notice})
            case channel:
                raise Fatal(
                    f"notices by {channel[:20]} are not set up; see outbound.notice_to and the settings beside it"
                )
