"""The servers of large mail providers, and what each wants instead of the account's password. Data.

What a provider's help pages say changes; a preset is where the search for a server begins, and the server's own
certificate and answers decide.
"""

from dataclasses import dataclass

from postroom.mailboxes.imap.wire import Endpoint, is_loopback


@dataclass(frozen=True, slots=True)
class Preset:
    """A provider: its domains, its servers, and a word on passwords.

    `mail_hosts` are the ends of the names of its MX hosts: a domain of one's own that it hosts is recognised by them.
    """

    name: str
    domains: tuple[str, ...]
    imap: Endpoint
    submission: Endpoint
    password: str
    mail_hosts: tuple[str, ...] = ()
    takes_passwords: bool = True
    """False if the server accepts access tokens only."""
    files_copies: bool = False
    """True if its submission server is known to put a copy of what it takes into sent mail."""


_STARTTLS = "starttls"
_ZOHO = (
    "Zoho wants IMAP switched on first (Settings, Mail accounts), and with two-factor authentication an app-specific "
    "password."
)

PRESETS = (
    Preset(
        "Gmail",
        ("gmail.com", "googlemail.com"),
        Endpoint("imap.gmail.com", 993),
        Endpoint("smtp.gmail.com", 465),
        "Google wants an app password. Turn on 2-Step Verification, then create one at "
        "https://myaccount.google.com/apppasswords. Organisations may have switched them off.",
        ("google.com", "googlemail.com"),
        files_copies=True,
    ),
    Preset(
        "Microsoft",
        ("outlook.com", "hotmail.com", "live.com", "msn.com", "outlook.de", "hotmail.co.uk", "hotmail.fr"),
        Endpoint("outlook.office365.com", 993),
        Endpoint("smtp-mail.outlook.com", 587, _STARTTLS),
        "Microsoft accepts no passwords over IMAP, app passwords neither, only the access tokens of a registered app.",
        ("mail.protection.outlook.com", "olc.protection.outlook.com"),
        takes_passwords=False,
        files_copies=True,
    ),
    Preset(
        "Yahoo",
        ("yahoo.com", "yahoo.co.uk", "yahoo.de", "yahoo.fr", "yahoo.it", "yahoo.es", "ymail.com", "rocketmail.com"),
        Endpoint("imap.mail.yahoo.com", 993),
        Endpoint("smtp.mail.yahoo.com", 465),
        "Yahoo wants an app password. Create one under Account security.",
        ("yahoodns.net",),
        files_copies=True,
    ),
    Preset(
        "AOL",
        ("aol.com", "aim.com"),
        Endpoint("imap.aol.com", 993),
        Endpoint("smtp.aol.com", 465),
        "AOL wants an app password. Create one under Account security.",
        files_copies=True,
    ),
    Preset(
        "iCloud",
        ("icloud.com", "me.com", "mac.com"),
        Endpoint("imap.mail.me.com", 993),
        Endpoint("smtp.mail.me.com", 587, _STARTTLS),
        "Apple wants an app-specific password. Turn on two-factor authentication, then create one at "
        "https://account.apple.com.",
        ("mail.icloud.com",),
        files_copies=True,
    ),
    Preset(
        "Fastmail",
        ("fastmail.com", "fastmail.fm", "messagingengine.com"),
        Endpoint("imap.fastmail.com", 993),
        Endpoint("smtp.fastmail.com", 465),
        "Fastmail wants an app password with access to mail. Create one under Settings, Privacy & Security.",
        ("messagingengine.com",),
    ),
    Preset(
        "GMX",
        ("gmx.net", "gmx.de", "gmx.at", "gmx.ch", "gmx.com", "gmx.org"),
        Endpoint("imap.gmx.net", 993),
        Endpoint("mail.gmx.net", 465),
        "GMX wants IMAP switched on first (E-Mail settings, POP3 & IMAP), and with two-factor authentication an "
        "app-specific password.",
    ),
    Preset(
        "WEB.DE",
        ("web.de",),
        Endpoint("imap.web.de", 993),
        Endpoint("smtp.web.de", 587, _STARTTLS),
        "WEB.DE wants IMAP switched on first (E-Mail settings, POP3 & IMAP), and with two-factor authentication an "
        "app-specific password.",
    ),
    Preset(
        "Zoho",
        ("zoho.com", "zohomail.com"),
        Endpoint("imap.zoho.com", 993),
        Endpoint("smtp.zoho.com", 465),
        _ZOHO,
        files_copies=True,
    ),
    # Organisations with a domain of their own have other servers.
    Preset(
        "Zoho for organisations",
        (),
        Endpoint("imappro.zoho.com", 993),
        Endpoint("smtppro.zoho.com", 465),
        _ZOHO,
        ("zoho.com",),
        files_copies=True,
    ),
    Preset(
        "Zoho for organisations, Europe",
        (),
        Endpoint("imappro.zoho.eu", 993),
        Endpoint("smtppro.zoho.eu", 465),
        _ZOHO,
        ("zoho.eu",),
        files_copies=True,
    ),
    Preset(
        "Yandex",
        ("yandex.com", "yandex.ru", "ya.ru"),
        Endpoint("imap.yandex.com", 993),
        Endpoint("smtp.yandex.com", 465),
        "Yandex wants IMAP switched on first (All settings, Email clients) and an app password.",
        ("mx.yandex.net", "mx.yandex.ru"),
    ),
    Preset(
        "Mail.ru",
        ("mail.ru", "inbox.ru", "list.ru", "bk.ru"),
        Endpoint("imap.mail.ru", 993),
        Endpoint("smtp.mail.ru", 465),
        "Mail.ru wants a password for external apps. Create one under Security.",
        ("mxs.mail.ru", "emx.mail.ru"),
    ),
    Preset(
        "Proton Mail Bridge",
        ("proton.me", "protonmail.com", "pm.me"),
        Endpoint("127.0.0.1", 1143, _STARTTLS),
        Endpoint("127.0.0.1", 1025, _STARTTLS),
        "Proton is reached through its Bridge on this machine: start it, and use the password that it shows. Its "
        "certificate is its own: export it from the Bridge's settings and name the file.",
        ("protonmail.ch",),
    ),
)


def preset_for(domain: str) -> Preset | None:
    """The provider whose own domain this is."""
    return next((each for each in PRESETS if domain in each.domains), None)


def preset_at(host: str) -> Preset | None:
    """The provider whose server this is. On this machine it may be anybody's."""
    found = (each for each in PRESETS if host in (each.imap.host, each.submission.host))
    return None if is_loopback(host) else next(found, None)


def preset_of_hosts(mail_hosts: tuple[str, ...]) -> Preset | None:
    """The provider that receives the mail of a domain, known by the names of its MX hosts."""
    for host in mail_hosts:
        for preset in PRESETS:
            if any(host == end or host.endswith(f".{end}") for end in preset.mail_hosts):
                return preset
    return None


def files_copies(host: str) -> bool:
    """Whether the submission server of this name puts a copy into sent mail. A domain of one's own is often set up by
    hand with the servers of a provider, so the host decides.
    """
    return host.lower() in _FILING


_FILING = frozenset({each.submission.host for each in PRESETS if each.files_copies} | {"smtp.office365.com"})
