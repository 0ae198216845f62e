"""The servers that take mail for a destination: by MX, by address, or as the domain says itself (RFC 5321, 5.1)."""

from collections.abc import AsyncIterator
from random import Random

from postroom.core.outbound.destinations import (
    IPAddress,
    MailHost,
    before_ourselves,
    in_order,
    is_public,
    literal_address,
)
from postroom.core.outbound.replies import found_out
from postroom.outbound.smtp.dns import Dns, DnsFailed, NoSuchName
from postroom.outbound.smtp.errors import NoRoute
from postroom.outbound.smtp.options import SmtpOptions


class Routes:
    def __init__(self, dns: Dns, options: SmtpOptions, rng: Random) -> None:
        self._dns = dns
        self._options = options
        self._own_names = options.own_names | {options.hostname.lower()}
        self._rng = rng

    async def hosts(self, destination: str) -> list[MailHost]:
        """The hosts to try, in order. Raises NoRoute."""
        if literal_address(destination) is not None:
            return [MailHost(0, destination)]
        try:
            given = await self._dns.mail_hosts(destination)
        except NoSuchName:
            raise _never("5.1.2", f"the domain {destination} does not exist") from None
        except DnsFailed as error:
            raise _later(str(error)) from None
        if given and not any(host.name for host in given):
            raise _never("5.1.10", f"the domain {destination} takes no mail (null MX)")
        hosts = [host for host in given if host.name] or [MailHost(0, destination)]
        closer = before_ourselves(hosts, self._own_names)
        if not closer:
            raise _never("5.4.6", f"mail for {destination} would come back to us: we are its best mail server")
        return in_order(closer, self._rng)

    async def addresses(self, hosts: list[MailHost]) -> AsyncIterator[tuple[str, str]]:
        """The name and the address of each server, in order. Raises NoRoute if there was none at all.

        An address on a private network is left out: whoever writes DNS records must not choose whom of ours we talk to.
        """
        found, private, failed = False, False, None
        for host in hosts:
            try:
                addresses = await self._of(host.name)
            except NoSuchName:
                continue
            except DnsFailed as error:
                failed = error
                continue
            public = [each for each in addresses if self._options.allow_private or is_public(each)]
            private = private or len(public) < len(addresses)
            for address in public:
                found = True
                yield host.name, str(address)
        names = ", ".join(host.name for host in hosts[:3])
        if found:
            return
        if failed is not None:
            raise _later(str(failed))
        if private:
            raise _never("5.4.4", f"{names} is on a private network, to which no mail is sent")
        raise _never("5.4.4", f"{names} has no address")

    async def _of(self, name: str) -> list[IPAddress]:
        """The addresses of a host: families alternate, so that one that does not work here costs one attempt."""
        if (literal := literal_address(name)) is not None:
            return [literal]
        found = await self._dns.addresses(name, self._options.families)
        self._rng.shuffle(found)
        firsts = {version: [each for each in found if each.version == version] for version in self._options.families}
        places = {each: place for group in firsts.values() for place, each in enumerate(group)}
        return sorted(found, key=lambda each: (places[each], self._options.families.index(each.version)))


def _never(enhanced: str, why: str) -> NoRoute:
    return NoRoute(found_out(enhanced, why, "route"))


def _later(why: str) -> NoRoute:
    return NoRoute(found_out("4.4.3", why, "route"))
