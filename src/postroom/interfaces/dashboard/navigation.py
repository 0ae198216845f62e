"""Where pages stand in the navigation: in groups, each with its sign and its key after `g`."""

from typing import NamedTuple

from postroom.core.visitors import PersonRole


class NavigationEntry(NamedTuple):
    address: str
    title: str
    icon: str
    key: str


class Command(NamedTuple):
    """Something that the palette offers on every page: the page where it is done, which opens the first of the dialogs
    that `#do-` names and that it has."""

    address: str
    title: str
    role: PersonRole = "operator"


class Group(NamedTuple):
    title: str
    places: tuple[NavigationEntry, ...]


GROUPS = (
    Group(
        "",
        (
            NavigationEntry("/", "Overview", "overview", "o"),
            NavigationEntry("/mail", "Mail", "mail", "m"),
            NavigationEntry("/approvals", "Approvals", "yes", "a"),
            NavigationEntry("/rules", "Rules", "rules", "r"),
        ),
    ),
    Group(
        "Incoming",
        (
            NavigationEntry("/connectors", "Connectors", "plug", "c"),
            NavigationEntry("/backfill", "Backfill", "archive", "b"),
            NavigationEntry("/filters", "Filters", "filter", "f"),
            NavigationEntry("/queues", "Queues", "layers", "q"),
            NavigationEntry("/jobs", "Jobs", "jobs", "j"),
        ),
    ),
    Group("Outgoing", (NavigationEntry("/outbound", "Outbound", "send", "u"),)),
    Group(
        "Admin",
        (NavigationEntry("/audit", "Audit", "book", "t"), NavigationEntry("/settings", "Settings", "gear", "s")),
    ),
)
ON_A_PHONE = ("/", "/mail", "/approvals", "/rules")
"""The pages in the bar at the bottom of a narrow screen; the others are in its drawer."""


def groups_of(addresses: set[str]) -> list[Group]:
    """Return the groups with the pages that exist."""
    found = [Group(title, tuple(each for each in places if each.address in addresses)) for title, places in GROUPS]
    return [each for each in found if each.places]


def place_of(path: str) -> str:
    """Return the page in the navigation that this path belongs to: `/mail/abc` belongs to `/mail`."""
    return f"/{path.strip('/').partition('/')[0]}"


COMMANDS = (
    Command("/#do-pause,resume", "Pause or resume everything…"),
    Command("/#do-undo-today", "Undo all of today…"),
    Command("/connectors", "Sync a mailbox now: look for new mail"),
    Command("/rules/new", "Make a rule"),
    Command("/rules/starter", "Choose starter rules"),
    Command("/rules/import", "Import rules"),
    Command("/backfill/new", "New backfill"),
    Command("/connectors/new", "Connect a mailbox", "admin"),
    Command("/settings/sign-in", "Sign out, or change how you sign in", "viewer"),
)
