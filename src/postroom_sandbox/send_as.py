"""The addresses from which a user may send: the mailbox's own, and aliases, verified or not yet."""

from dataclasses import dataclass
from typing import Any, Literal

from postroom_sandbox.refusal import conflict, invalid, missing

Verification = Literal["accepted", "pending"]


@dataclass(frozen=True)
class Alias:
    address: str
    display_name: str = ""
    verification: Verification = "accepted"
    treat_as_alias: bool = True


class SendAs:
    """The send-as addresses of one mailbox. One of them is the default, at first its own."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self.own_name = ""
        self._aliases: dict[str, Alias] = {}
        self._default = owner

    def add(self, alias: Alias, default: bool = False) -> None:
        if "@" not in alias.address.strip("@"):
            raise invalid("Invalid sendAsEmail")
        if alias.address.lower() in {self._owner.lower(), *self._aliases}:
            raise conflict("Send-as alias already exists")
        if default and alias.verification != "accepted":
            raise invalid("An address that is not verified cannot be the default")
        self._aliases[alias.address.lower()] = alias
        self._default = alias.address if default else self._default

    def clear(self) -> None:
        self._aliases.clear()
        self._default = self._owner

    def usable(self) -> frozenset[str]:
        """The addresses from which mail may be sent, in lower case."""
        verified = [name for name, alias in self._aliases.items() if alias.verification == "accepted"]
        return frozenset({self._owner.lower(), *verified})

    def get(self, address: str) -> dict[str, Any]:
        found = (each for each in self.as_json() if each["sendAsEmail"].lower() == address.lower())
        if (one := next(found, None)) is None:
            raise missing()
        return one

    def as_json(self) -> list[dict[str, Any]]:
        """All addresses, the mailbox's own first. Google leaves out false values, and its own has no verification."""
        own = {
            "sendAsEmail": self._owner,
            "displayName": self.own_name,
            "replyToAddress": "",
            "signature": "",
            "isPrimary": True,
        }
        return [
            self._mark_default(own),
            *(self._mark_default(_alias_resource(alias)) for alias in self._aliases.values()),
        ]

    def _mark_default(self, shown: dict[str, Any]) -> dict[str, Any]:
        return {**shown, "isDefault": True} if shown["sendAsEmail"] == self._default else shown


def _alias_resource(alias: Alias) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "sendAsEmail": alias.address,
        "displayName": alias.display_name,
        "replyToAddress": "",
        "signature": "",
        "verificationStatus": alias.verification,
    }
    return {**shown, "treatAsAlias": True} if alias.treat_as_alias else shown
