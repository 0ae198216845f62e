"""First looks at mailboxes, for the pages: one for each account, with its progress and the starters chosen by it.

All of it is in memory alone: a look has the text of mail. After a restart, a person looks again.
"""

from collections.abc import AsyncIterator, Callable, Collection, Set
from uuid import UUID

from postroom.core.errors import AccountUnusable, Refused
from postroom.core.rules.starter import starters_named
from postroom.operations.installation.long_tasks import LongTask, LongTasks, Report
from postroom.operations.preview.first_look import MOST, FirstLook, take_first_look
from postroom.operations.preview.preview_account import OpenSource
from postroom.settings.reading import Settings
from postroom.store.accounts.accounts import AccountView
from postroom.store.engine.database import Database
from postroom.system.wall_clock import Clock

MOST_REMEMBERED = 5

LookTask = LongTask[str, FirstLook]


class FirstLooks:
    """The looks of this process. Each changes nothing, and is canceled when nobody waits for it."""

    def __init__(
        self, database: Database, settings: Callable[[], Settings], clock: Clock, open_source: OpenSource | None
    ) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock
        self._open_source = open_source
        self._tasks = LongTasks[str, FirstLook](most_remembered=MOST_REMEMBERED, now=clock)
        self._chosen: dict[str, Set[str]] = {}

    def begin(self, account: AccountView) -> LookTask:
        """Look at the newest mail of this account; if that is under way, return it. Raises Refused."""
        found = self.find(account.id)
        if found is not None and found.state == "running":
            return found
        if self._open_source is None:
            raise Refused("this server only ingests mail; it cannot look into mailboxes")
        open_source = self._open_source

        async def work(report: Report) -> FirstLook:
            def progress(number: int) -> None:
                report(number, max(MOST, number))

            arguments = self._database, self._settings(), str(account.id), open_source, progress
            try:
                return await take_first_look(*arguments, now=self._clock())
            except AccountUnusable as error:
                raise Refused(str(error)) from None

        return self._tasks.start(account.email, work, str(account.id))

    def find(self, account_id: UUID) -> LookTask | None:
        """The look at this account as it is now; None if there was none since the start."""
        return self._tasks.find(str(account_id))

    def chosen(self, account_id: UUID, look: FirstLook) -> Set[str]:
        """The starters that were chosen; before that, those that would do something to this mail, or all if none would.
        Those whose rules are in use stay chosen.
        """
        useful = [each for each in look.starters if each.matched] or look.starters
        wanted = self._chosen.get(str(account_id), frozenset(each.name for each in useful))
        return wanted | {each.name for each in look.starters if each.chosen == "yes"}

    def choose(self, account_id: UUID, names: Collection[str]) -> Set[str]:
        """Remember a choice. Raises BadInput for a starter that there is not."""
        chosen = frozenset(each.name for each in starters_named(list(names)))
        self._chosen[str(account_id)] = chosen
        return chosen

    def changes(self) -> AsyncIterator[None]:
        """Yield at once, and then whenever a look has come further."""
        return self._tasks.changes()

    def close(self) -> None:
        self._tasks.close()


def check_has_rules(look: FirstLook, chosen: Collection[str]) -> None:
    """Raises Refused if nothing would decide about mail."""
    if not (chosen or look.own or look.has_model):
        raise Refused("No rule is chosen, so there is nothing to turn on. Choose at least one.")


def check_is_shown(task: LookTask | None, shown: str) -> FirstLook:
    """Return the look that a page has shown. Raises Refused if it is not the newest, or was forgotten."""
    if task is None:
        raise Refused("The last look at your mail is over: Postroom was restarted, or it was long ago. Look again.")
    if task.result is None or task.started_at.isoformat() != shown:
        raise Refused("This page is older than the newest look at your mail. Check the new numbers, then confirm.")
    return task.result
