"""Every action in the audit log: its object, when it is written, and the values kept with it.

The reference of roles is made from this table. An action that is not in it cannot be written: the type refuses it.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

AuditedAction = Literal[
    "token.create",
    "token.revoke",
    "person.add",
    "person.role",
    "person.remove",
    "person.link",
    "person.password",
    "person.codes_on",
    "person.codes_off",
    "person.passkey_add",
    "person.passkey_remove",
    "sign_in",
    "sign_in.again",
    "sign_in.refused",
    "session.end",
    "session.end_all",
    "account.connect",
    "account.act",
    "account.pause",
    "account.resume",
    "account.remove",
    "account.consent_lost",
    "account.sign_in_refused",
    "account.sync",
    "account.retry_ingest",
    "key.rotate",
    "key.drop",
    "rules.add",
    "rules.import",
    "rules.apply",
    "rules.edit",
    "rules.enable",
    "rules.disable",
    "rules.confirm",
    "rules.move",
    "rules.remove",
    "proposals.dismiss",
    "directions.add",
    "directions.edit",
    "directions.remove",
    "model_rules.add",
    "model_rules.edit",
    "model_rules.remove",
    "labels.edit",
    "filters.add",
    "filters.remove",
    "filters.restore",
    "contacts.add",
    "protect",
    "unprotect",
    "shadow.begin",
    "shadow.end",
    "mutations.pause",
    "mutations.resume",
    "decision.wrong",
    "messages.reclassify",
    "mail.hide",
    "mail.search",
    "mail.read",
    "decisions.explain",
    "actions.list",
    "mailbox.search",
    "mailbox.search_result",
    "action.ask",
    "action.undo",
    "actions.undo",
    "approval.approve",
    "approval.reject",
    "approval.expire",
    "approval.cancel",
    "approval.refused",
    "backfill.create",
    "backfill.start",
    "backfill.pause",
    "backfill.resume",
    "backfill.cancel",
    "backfill.cost_cap",
    "backfill.complete",
    "backfill.error",
    "retention.prune",
    "retention.enable",
    "retention.disable",
    "queue.replay",
    "queue.dismiss",
    "job.retry",
    "job.cancel",
    "job.dismiss",
    "job.retry_many",
    "job.cancel_many",
    "job.dismiss_many",
    "tenant.add",
    "tenant.weight",
    "tenant.pause",
    "tenant.resume",
    "sender.add",
    "sender.password",
    "sender.disable",
    "sender.enable",
    "sender.throttle",
    "sender.release",
    "outbound.cancel",
    "outbound.retry",
    "outbound.resolve",
    "suppression.add",
    "suppression.remove",
    "destination.pause",
    "destination.resume",
    "dkim.add",
    "dkim.remove",
    "database.restored",
    "database.promoted",
    "database.compared",
    "access.refused",
]


class Audited(NamedTuple):
    """The object of an action, when it is audited, and what the entry says about before and after."""

    object: str
    when: str
    kept: str


AUDITED: Mapping[AuditedAction, Audited] = {
    "token.create": Audited("token", "a token was created", "role, identity, account, name, expiry"),
    "token.revoke": Audited(
        "token",
        "a token was revoked; not if it already was and nothing was left of its work",
        "`revoked_at`, and how much of its work was withdrawn",
    ),
    "person.add": Audited("person", "a person was added who may sign in", "name and role"),
    "person.role": Audited("person", "a person got another role", "the role"),
    "person.remove": Audited("person", "a person was removed", "name and role"),
    "person.link": Audited("person", "a link to sign in once was made", "–"),
    "person.password": Audited("person", "a password was set", "–; never the password"),
    "person.codes_on": Audited("person", "signing in asks for codes of an app, too", "–"),
    "person.codes_off": Audited("person", "signing in asks for no codes any more", "–"),
    "person.passkey_add": Audited("person", "a passkey was added", "its name"),
    "person.passkey_remove": Audited("person", "a passkey was removed", "its name"),
    "sign_in": Audited("person", "a person signed in", "how"),
    "sign_in.again": Audited("person", "a person proved again who they are", "how"),
    "sign_in.refused": Audited(
        "person, or the name that was given", "a sign-in failed; repeated failures are counted", "how many"
    ),
    "session.end": Audited("session", "a person signed out, or was signed out", "–"),
    "session.end_all": Audited("person", "all sessions of a person were ended", "how many"),
    "account.connect": Audited(
        "account", "an account was connected, or its consent renewed", "state; address, level, scopes"
    ),
    "account.act": Audited("account", "someone said from when on to act; not if nothing changed", "the time"),
    "account.pause": Audited("account", "someone paused it; not if it was paused", "state and reason"),
    "account.resume": Audited("account", "someone resumed it; not if nothing changed", "state and reason"),
    "account.remove": Audited("account", "someone removed it; not if it was removed", "state and reason"),
    "account.consent_lost": Audited("account", "the provider no longer accepts the consent", "state and reason"),
    "account.sign_in_refused": Audited("account", "the mail server does not accept the sign-in", "state and reason"),
    "account.sync": Audited("account", "someone asked to look for new mail and changed labels now", "–"),
    "account.retry_ingest": Audited(
        "account", "someone asked to fetch mail again that was refused or set aside", "how many messages"
    ),
    "key.rotate": Audited("key", "the secrets were encrypted with another key", "how many"),
    "key.drop": Audited("key", "a key was dropped", "–"),
    "rules.add": Audited("rule", "rules were added", "the rule, or the names and how many"),
    "rules.import": Audited("rule", "rules were imported", "the rule, or the names and how many"),
    "rules.apply": Audited(
        "rule", "a file of rules was applied", "the names and how many were added, changed and removed"
    ),
    "rules.edit": Audited("rule", "a rule was changed", "the rule"),
    "rules.enable": Audited("rule", "a rule was switched on", "whether it is on"),
    "rules.disable": Audited(
        "rule", "a rule was switched off, by someone or since it is broken", "whether it is on, and why not"
    ),
    "rules.confirm": Audited("rule", "a person confirmed a rule that a token wrote", "the rule and its hash"),
    "rules.move": Audited("rule", "a rule is tried earlier or later", "its place and priority"),
    "rules.remove": Audited("rule", "a rule was removed", "the rule"),
    "proposals.dismiss": Audited("proposal", "a proposed rule was dismissed", "–"),
    "directions.add": Audited("direction", "a direction for the model was added", "the direction"),
    "directions.edit": Audited("direction", "a direction for the model was changed", "the direction"),
    "directions.remove": Audited("direction", "a direction for the model was removed", "the direction"),
    "model_rules.add": Audited("model rule", "a rule for the model was added", "the rule"),
    "model_rules.edit": Audited("model rule", "a rule for the model was changed", "the rule"),
    "model_rules.remove": Audited("model rule", "a rule for the model was removed", "the rule"),
    "labels.edit": Audited("label", "a label was described, or allowed or denied to the classifier", "both"),
    "filters.add": Audited("filter", "a filter was added or changed", "the filter"),
    "filters.remove": Audited("filter", "a filter was removed, or a built-in one switched off", "the filter"),
    "filters.restore": Audited("filter", "a built-in filter was switched on again", "–"),
    "contacts.add": Audited("endpoint, or `all`", "contacts were added through MCP, or imported", "how many"),
    "protect": Audited("sender, domain or label", "mail was protected", "why"),
    "unprotect": Audited("sender, domain or label", "the protection was removed", "–"),
    "shadow.begin": Audited("category or model", "it decides in shadow from now on", "–"),
    "shadow.end": Audited("category or model", "its decisions are carried out from now on", "–"),
    "mutations.pause": Audited("`all`, or the account", "the kill switch was used", "the reason"),
    "mutations.resume": Audited("`all`, or the account", "a person resumed", "how many jobs continue"),
    "decision.wrong": Audited("decision", "a person called it wrong: it was undone, and an exception is proposed", "–"),
    "messages.reclassify": Audited(
        "batch", "a person asked to decide again about messages", "how many messages, and since when"
    ),
    "mail.hide": Audited(
        "action", "the model or an agent hid a message without approval", "the message and the action"
    ),
    "mail.search": Audited(
        "account, or `all`", "an agent or a program searched stored mail", "how many were found, and `repeated`"
    ),
    "mail.read": Audited("message", "an agent or a program read it", "the level, and `repeated`"),
    "decisions.explain": Audited("message", "an agent or a program asked why", "the level, and `repeated`"),
    "actions.list": Audited(
        "state, or `all`", "an agent or a program listed actions", "how many were found, and `repeated`"
    ),
    "mailbox.search": Audited(
        "account", "someone called `email_search_and_ingest` or `postroom search-and-ingest`", "`max_results`"
    ),
    "mailbox.search_result": Audited("account", "such a search was answered", "how many had each outcome"),
    "action.ask": Audited(
        "action, or the message if it was refused",
        "an agent proposed an action, or a person asked for one",
        "the message, the action and its state; or `refused`",
    ),
    "action.undo": Audited("action", "an undo was started, or refused to an agent", "–, or `refused`"),
    "actions.undo": Audited(
        "the entry itself", "more than one action was undone at once", "the selection, how many actions and messages"
    ),
    "approval.approve": Audited("action", "a person approved", "the state; the kind of action and its hash"),
    "approval.reject": Audited("action", "a person rejected", "the state"),
    "approval.expire": Audited("action", "a person answered too late", "the state"),
    "approval.cancel": Audited(
        "action", "the action no longer made sense, or the token that asked for it was revoked", "the state"
    ),
    "approval.refused": Audited(
        "action, or `unknown`",
        "a press of a Discord button without permission, or of a foreign button; or an answer that did not count",
        "–; the reason says why",
    ),
    "backfill.create": Audited(
        "backfill", "a backfill was created, with the owner's consent", "its window, categories and limits"
    ),
    "backfill.start": Audited("backfill", "a connector began with it", "the status"),
    "backfill.pause": Audited("backfill", "someone paused it", "the status"),
    "backfill.resume": Audited("backfill", "someone resumed it, or the next day began", "the status"),
    "backfill.cancel": Audited("backfill", "someone canceled it, or its account was removed", "the status"),
    "backfill.cost_cap": Audited("backfill", "it reached its daily cost limit", "the status"),
    "backfill.complete": Audited("backfill", "it is complete", "the status"),
    "backfill.error": Audited("backfill", "it failed", "the status and the error"),
    "retention.prune": Audited("batch", "mail was pruned", "how many, by tier and category, and how many are held"),
    "retention.enable": Audited("`retention`", "pruning every day was approved", "the settings"),
    "retention.disable": Audited("`retention`", "pruning every day was withdrawn", "the settings"),
    "queue.replay": Audited(
        "queue",
        "past messages were queued once more; not if none was found",
        "window, kinds, the first 20 ids, and count",
    ),
    "queue.dismiss": Audited("queue", "messages that ended unprocessed were dismissed", "how many"),
    "job.retry": Audited("job", "someone retried a job", "–"),
    "job.cancel": Audited("job", "someone canceled a job", "whether it ended at once"),
    "job.dismiss": Audited("job", "someone dismissed a failed job", "–"),
    "job.retry_many": Audited(
        "the request", "many jobs were retried, part by part", "the selection, and how far it came"
    ),
    "job.cancel_many": Audited(
        "the request", "many jobs were canceled, part by part", "the selection, and how far it came"
    ),
    "job.dismiss_many": Audited(
        "the request", "many failed jobs were dismissed, part by part", "the selection, and how far it came"
    ),
    "tenant.add": Audited("tenant", "a tenant was added", "name, domains and weight"),
    "tenant.weight": Audited("tenant", "its weight was set", "the weight"),
    "tenant.pause": Audited("tenant", "someone paused it; not if nothing changed", "the state"),
    "tenant.resume": Audited("tenant", "someone resumed it; not if nothing changed", "the state"),
    "sender.add": Audited(
        "sender", "a sender was added", "username, domain, addresses, plan and limit; never the password"
    ),
    "sender.password": Audited("sender", "its password was set", "–; never the password"),
    "sender.disable": Audited("sender", "someone disabled it; not if nothing changed", "the state"),
    "sender.enable": Audited("sender", "someone enabled it; not if nothing changed", "the state"),
    "sender.throttle": Audited(
        "sender", "a throttle began or was changed, by a person or for the score", "until when, why, and the score"
    ),
    "sender.release": Audited("sender", "a throttle ended", "until when, why, and the score"),
    "outbound.cancel": Audited("delivery", "someone canceled an outgoing mail", "the state"),
    "outbound.retry": Audited("delivery", "someone let an outgoing mail be tried at once", "the state"),
    "outbound.resolve": Audited(
        "delivery", "a person stated the outcome of a mail whose outcome was unknown", "the state"
    ),
    "suppression.add": Audited("suppression", "someone suppressed an address", "–"),
    "suppression.remove": Audited("suppression", "someone removed a suppression", "–"),
    "destination.pause": Audited("destination", "someone paused a destination", "why"),
    "destination.resume": Audited("destination", "someone resumed a destination", "–"),
    "dkim.add": Audited("DKIM key", "a key was made", "domain and selector"),
    "dkim.remove": Audited("DKIM key", "a key was removed", "domain and selector"),
    "database.restored": Audited("epoch", "a restore of a backup was noticed", "the findings"),
    "database.promoted": Audited("epoch", "a replica was promoted", "the findings"),
    "database.compared": Audited(
        "account", "a mailbox was compared with a restored database", "how many of each result"
    ),
    "access.refused": Audited(
        "tool or operation",
        "a valid token called something outside its scope: a tool, a queue, an endpoint",
        "–, or `repeated`; the reason says what",
    ),
}
