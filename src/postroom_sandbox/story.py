"""The mail of the demo's first minute, delivered scene by scene. The same seed gives the same mail."""

from collections.abc import Iterator
from datetime import datetime
from random import Random

from postroom_sandbox.emulator import Emulator
from postroom_sandbox.faults import Fault
from postroom_sandbox.message import Message
from postroom_sandbox.raw_mail import SampleMail
from postroom_sandbox.sample import SampleWriter, Template
from postroom_sandbox.scenes import FERRY, Scene

BURST: dict[Template, int] = {SampleWriter.newsletter: 20, SampleWriter.shipping: 6, SampleWriter.service: 4}


class StoryMail:
    """Delivers the mail of the story into the emulator's mailbox."""

    def __init__(self, emulator: Emulator, rng: Random) -> None:
        self._emulator = emulator
        self._rng = rng
        self._writer = SampleWriter(rng)

    def burst(self) -> Message:
        """Deliver newsletters and notifications all at once; return the contact's reply in the middle of them."""
        mails = list(self._many(self._emulator.mailbox.clock()))
        middle = len(mails) // 2
        for mail in mails[:middle]:
            self._deliver(mail)
        reply = self._deliver(self._writer.answer(self._emulator.mailbox.clock(), FERRY))
        for mail in mails[middle:]:
            self._deliver(mail)
        return reply

    def scene(self, scene: Scene) -> Message:
        return self._deliver(self._writer.scene(scene, self._emulator.mailbox.clock()))

    def refuse_a_change(self, scene: Scene) -> Message:
        """Deliver a mail of which the mailbox refuses the first change."""
        message = self.scene(scene)
        self._emulator.faults.order(Fault(400, "failedPrecondition", path=f"/{message.id}/modify"))
        return message

    def _many(self, at: datetime) -> Iterator[SampleMail]:
        kinds = [kind for kind, number in BURST.items() for _ in range(number)]
        for kind in self._rng.sample(kinds, len(kinds)):
            yield kind(self._writer, at)

    def _deliver(self, mail: SampleMail) -> Message:
        return self._emulator.mailbox.receive(mail.raw, mail.labels)
