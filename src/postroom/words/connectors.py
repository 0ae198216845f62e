"""Words for accounts, their connectors, and mail that was not ingested."""

from collections.abc import Mapping

from postroom.core.mail.providers import SignIn
from postroom.core.mail.servers import LabelsAs, Security
from postroom.words.states import Mood

LOST_ACCESS: Mapping[SignIn, str] = {"password": "password refused", "consent": "needs your consent"}
ACCOUNT_MOODS: Mapping[str, Mood] = {"active": "good", "paused": "ask", "needs_consent": "bad"}
LIVENESS: Mapping[str, str] = {"never": "no report yet"}
LIVENESS_MOODS: Mapping[str, Mood] = {"online": "good", "stale": "ask", "offline": "bad", "never": "ask"}
REPORT_MOODS: Mapping[str, Mood] = {"healthy": "good", "degraded": "ask", "error": "bad"}
NOT_INGESTED: Mapping[str, str] = {"refused": "refused", "set_aside": "set aside"}
NOT_INGESTED_MOODS: Mapping[str, Mood] = {"refused": "bad", "set_aside": "ask"}
STORED: Mapping[str, str] = {"full": "all of it", "metadata": "only metadata", "skip": "nothing"}
CONTACT_SOURCES: Mapping[str, str] = {
    "vcard": "address books (vCard)",
    "csv": "address books (CSV)",
    "mcp": "programs",
    "sent": "people you have written to",
}
CONSENT_LEVELS: Mapping[str, str] = {
    "read": "read mail, and change nothing",
    "organise": "read, label, archive, mark and trash; nothing that cannot be undone",
    "send": "also write and send mail",
    "full": "also delete for good",
}
SERVER_SECURITIES: Mapping[Security, str] = {"tls": "TLS from the first byte", "starttls": "STARTTLS"}
SERVER_LABELS: Mapping[LabelsAs, str] = {
    "keywords": "keywords: a message can have several",
    "folders": "folders: a label moves the message",
}
SIGN_IN_REFUSED: Mapping[str, str] = {
    "password": "{host} refused the password. Check the address and the password.",
    "app_password": "{host} wants an app password, not your usual one.",
    "expired": "This password has expired. Set a new one at your provider, then enter it here.",
    "policy": "{host} doesn’t let this user in. Ask your provider to allow IMAP.",
    "web": "{host} wants you to sign in on the web once and confirm it was you. Then try again.",
    "insecure": "{host} wants a secured connection. Choose its port for TLS, or STARTTLS.",
}
"""What a server that refused to let the user in wants, by the cause."""
SERVER_PROBLEMS: Mapping[str, str] = {
    "not_found": "No mail server was found for this address. Enter the one that your provider names.",
    "unreachable": "{host} didn’t answer. Check its name and port, or try again later.",
    "certificates": "These are no certificates in PEM. Paste the whole text, from -----BEGIN CERTIFICATE----- on.",
}


def account_state(state: str, sign_in: SignIn, *, needs_repair: bool = False) -> str:
    """The state of an account; one that needs a repair first can be opened neither with a password nor a consent."""
    match state:
        case "active":
            return "in use"
        case "needs_consent":
            return "cannot be opened" if needs_repair else LOST_ACCESS[sign_in]
        case _:
            return state.replace("_", " ")
