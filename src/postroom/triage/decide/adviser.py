"""Asks the model about a stored message, with the user's guidance for it and the labels that the model may use. The
prompt contains nothing of any other message.
"""

from postroom.core.budget_shares import Spender
from postroom.store.engine.database import Database
from postroom.store.mail.labels import list_labels
from postroom.store.mail.mail import StoredMessage
from postroom.store.rules.guidance import ACTIVE, directions_for, model_rules_for
from postroom.triage.decide.engine import Advice
from postroom.triage.decide.model import Model, ModelRequest
from postroom.triage.decide.prompt import Mode, build_prompt


class ModelAdviser:
    """A model together with what it has to know."""

    def __init__(self, database: Database, model: Model, mode: Mode, own_labels: frozenset[str] = frozenset()) -> None:
        """`own_labels` are the names of Postroom's own labels, which the model may not use."""
        self._database = database
        self._model = model
        self._mode: Mode = mode
        self._own_labels = frozenset(name.casefold() for name in own_labels)

    async def advise(self, message: StoredMessage) -> Advice:
        """The model's decision. Raises a ModelError when it makes none."""
        account_id, sender = message.account_id, message.facts.sender
        rules = await self._database.run(model_rules_for(account_id, sender))
        labels = await self._database.run(list_labels(account_id))
        prompt = build_prompt(
            message.id,
            message.facts,
            await self._database.run(directions_for(account_id)),
            [each for each in rules if each.mode == ACTIVE],
            [each for each in labels if each.name.casefold() not in self._own_labels],
            self._mode,
        )
        spender = Spender.of(sender, message.policy_tier, is_contact=bool(message.facts.sender_in_contacts))
        request = ModelRequest(account_id, message.id, prompt, message.backfill_job_id, spender)
        answer = await self._model.decide(request)
        return Advice(answer.decision, answer.model, answer.prompt_version)
