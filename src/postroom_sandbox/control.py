"""The sandbox's control API, next to Google's: deliver mail, add faults, read counters, reset."""

from dataclasses import fields as fields_of
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any, cast

from starlette.requests import Request

from postroom_sandbox.account import Account
from postroom_sandbox.consent import Issued
from postroom_sandbox.faults import KINDS, STATUSES, Fault
from postroom_sandbox.mailbox import ARRIVING, Mailbox
from postroom_sandbox.methods import ALL_SCOPES, METHODS
from postroom_sandbox.outgoing import LARGEST_MESSAGE
from postroom_sandbox.refusal import conflict, invalid, missing
from postroom_sandbox.requests import Parameters, body_of, json_body, text_in, texts_in
from postroom_sandbox.send_as import Alias

if TYPE_CHECKING:
    from postroom_sandbox.emulator import Emulator

Json = dict[str, Any]

_LIMITS = {
    "perUserMinute": "per_user_minute",
    "perProjectMinute": "per_project_minute",
    "perDay": "per_day",
    "concurrent": "concurrent",
}


class Control:
    """The endpoints with which tests and the demo control the emulator."""

    def __init__(self, emulator: "Emulator") -> None:
        self._emulator = emulator

    async def deliver(self, request: Request) -> Json:
        """Deliver the raw mail in the body with the given `labelIds`, by default into the inbox, unread."""
        parameters = Parameters(request).only("labelIds", "user")
        labels = parameters.texts("labelIds") or ARRIVING
        raw = await body_of(request, LARGEST_MESSAGE)
        message = self._account(parameters.text("user")).mailbox.receive(raw, labels)
        return {**message.labelled(), "historyId": str(message.history_id)}

    async def list_faults(self, request: Request) -> Json:
        faults = self._emulator.faults
        return {"faults": [vars(fault) for fault in faults], "seed": faults.seed, "struck": len(faults.struck)}

    async def order_fault(self, request: Request) -> Json:
        given = await json_body(request, *(field.name for field in fields_of(Fault)))
        fault = Fault(
            code=_number(given, "code", 0),
            reason=text_in(given, "reason") or Fault.reason,
            path=text_in(given, "path") or Fault.path,
            times=_optional(given, "times"),
            retry_after=_optional(given, "retry_after"),
            kind=_one_of(given, "kind", KINDS),
            method=text_in(given, "method"),
            user=text_in(given, "user"),
            share=_decimal(given, "share", 1.0),
            seconds=None if given.get("seconds") is None else _decimal(given, "seconds", 0.0),
            delay_s=_decimal(given, "delay_s", 0.0),
            fields=tuple(texts_in(given, "fields")),
            size=_number(given, "size", Fault.size),
        )
        if fault.kind == "refuse" and fault.code not in STATUSES:
            raise invalid(f"code {fault.code} is not one of {', '.join(map(str, STATUSES))}")
        self._emulator.faults.order(fault)
        return vars(fault)

    async def clear_faults(self, request: Request) -> Json:
        self._emulator.faults.clear()
        return {"faults": []}

    async def reset(self, request: Request) -> Json:
        """Reset: no faults, counters at zero, and the initial mail in the first mailbox."""
        self._emulator.reset()
        return {"messages": len(self._emulator.mailbox)}

    async def expire_history(self, request: Request) -> Json:
        fields = await json_body(request, "user", "upTo")
        mailbox = self._account(text_in(fields, "user")).mailbox
        mailbox.expire_history(_optional(fields, "upTo"))
        return {"historyId": str(mailbox.history_id)}

    async def counters(self, request: Request) -> Json:
        quota = self._emulator.quota
        users = {user: {"spent": quota.spent(user), "most": quota.most_in_a_minute(user)} for user in self._users()}
        return {**quota.counters.as_json(), "users": users}

    async def reset_counters(self, request: Request) -> Json:
        self._emulator.quota.reset()
        return await self.counters(request)

    async def set_quota(self, request: Request) -> Json:
        """Set the limits that are given; null removes one. `prices` sets the price of methods."""
        given = await json_body(request, *_LIMITS, "userRefusal", "prices")
        quota = self._emulator.quota
        changes: Json = {_LIMITS[name]: _optional(given, name) for name in _LIMITS if name in given}
        if "userRefusal" in given:
            changes["user_refusal"] = _one_of(given, "userRefusal", ("403", "429"))
        prices = cast(Json, given.get("prices", {}))
        if not isinstance(given.get("prices", {}), dict) or not prices.keys() <= METHODS.keys():
            raise invalid("prices is not an object of methods and units")
        changes["prices"] = {**quota.limits.prices, **{name: _number(prices, name, 1) for name in prices}}
        quota.limits = replace(quota.limits, **changes)
        return {"limits": {**vars(quota.limits), "prices": dict(quota.limits.prices)}}

    async def set_search(self, request: Request) -> Json:
        """Set how searches lag: `lagSeconds` for new mail, and `gapsPerMille` of all mail that is never found."""
        given = await json_body(request, "user", "lagSeconds", "gapsPerMille")
        mailbox = self._account(text_in(given, "user")).mailbox
        if "lagSeconds" in given:
            mailbox.search_lag = timedelta(seconds=_number(given, "lagSeconds", 0))
        if "gapsPerMille" in given:
            mailbox.search_gaps = min(_number(given, "gapsPerMille", 0), 1000) / 1000
        return {"lagSeconds": mailbox.search_lag.total_seconds(), "gapsPerMille": round(mailbox.search_gaps * 1000)}

    async def issue_token(self, request: Request) -> Json:
        fields = await json_body(request, "user", "scopes")
        scopes = frozenset(texts_in(fields, "scopes")) or ALL_SCOPES
        issued = self._emulator.consents.issue(self._account(text_in(fields, "user")).mailbox.owner, scopes)
        return _tokens(issued)

    async def revoke(self, request: Request) -> Json:
        """Revoke one token with its consent, or all consents of a user."""
        fields = await json_body(request, "user", "token")
        if token := text_in(fields, "token"):
            return {"revoked": self._emulator.consents.revoke(token)}
        self._emulator.consents.revoke_user(self._account(text_in(fields, "user")).mailbox.owner)
        return {"revoked": True}

    async def set_consent(self, request: Request) -> Json:
        """Set how the user responds, the lifetime of tokens, and whether the app is in testing."""
        fields = await json_body(request, "deny", "withheld", "testing", "accessLife", "expireAccess")
        consents = self._emulator.consents
        behaviour = consents.behaviour
        behaviour.deny = bool(fields.get("deny", behaviour.deny))
        behaviour.testing = bool(fields.get("testing", behaviour.testing))
        if "withheld" in fields:
            behaviour.withheld = frozenset(texts_in(fields, "withheld"))
        if "accessLife" in fields:
            behaviour.access_life = timedelta(seconds=_number(fields, "accessLife", 3600))
        if fields.get("expireAccess"):
            consents.expire_access()
        return {"deny": behaviour.deny, "testing": behaviour.testing, "withheld": sorted(behaviour.withheld)}

    async def add_account(self, request: Request) -> Json:
        fields = await json_body(request, "email", "seed")
        email = text_in(fields, "email")
        if "@" not in email:
            raise invalid("email is not a mail address")
        if email in self._emulator.accounts:
            raise conflict(f"{email} has a mailbox already")
        first = self._emulator.mailbox
        rng = Random(_number(fields, "seed", 1))  # noqa: S311 - a sample, not a secret
        self._emulator.add(Mailbox(email, rng, first.clock, search_lag=first.search_lag))
        return {"email": email, **_tokens(self._emulator.consents.issue(email))}

    async def add_send_as(self, request: Request) -> Json:
        """Add an address from which the user may send, verified unless it is `pending`."""
        given = await json_body(
            request, "user", "sendAsEmail", "displayName", "verificationStatus", "treatAsAlias", "isDefault"
        )
        alias = Alias(
            text_in(given, "sendAsEmail"),
            text_in(given, "displayName"),
            _one_of(given, "verificationStatus", ("accepted", "pending")),
            bool(given.get("treatAsAlias", True)),
        )
        send_as = self._account(text_in(given, "user")).send_as
        send_as.add(alias, bool(given.get("isDefault", False)))
        return {"sendAs": send_as.as_json()}

    async def add_forwarding_address(self, request: Request) -> Json:
        """Verify an address to which filters may forward."""
        given = await json_body(request, "user", "forwardingEmail")
        address = text_in(given, "forwardingEmail")
        if "@" not in address.strip("@"):
            raise invalid("Invalid forwardingEmail")
        filters = self._account(text_in(given, "user")).mailbox.filters
        filters.forwarding.add(address.lower())
        return {"forwardingAddresses": sorted(filters.forwarding)}

    async def create_service_key(self, request: Request) -> Json:
        """Create a key file of a service account that gets its tokens from this emulator."""
        fields = await json_body(request, "email")
        return self._emulator.service_accounts.create_key(text_in(fields, "email"), f"{request.base_url}token")

    def _users(self) -> list[str]:
        return list(self._emulator.accounts)

    def _account(self, user: str) -> Account:
        accounts = self._emulator.accounts
        if user and user not in accounts:
            raise missing()
        return accounts[user or self._emulator.mailbox.owner]


def _tokens(issued: Issued) -> Json:
    return {
        "access_token": issued.access_token,
        "refresh_token": issued.refresh_token,
        "expires_in": issued.expires_in,
        "scopes": sorted(issued.scopes),
    }


def _number(fields: Json, name: str, default: int) -> int:
    value: object = fields.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise invalid(f"{name} is not a number")
    return value


def _optional(fields: Json, name: str) -> int | None:
    return None if fields.get(name) is None else _number(fields, name, 0)


def _decimal(fields: Json, name: str, default: float) -> float:
    value: object = fields.get(name, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
        raise invalid(f"{name} is not a number")
    return float(value)


def _one_of(fields: Json, name: str, allowed: tuple[Any, ...]) -> Any:
    value: object = fields.get(name, allowed[0])
    if value not in allowed:
        raise invalid(f"{name} {value} is not one of {', '.join(allowed)}")
    return value
