"""Where pages stand in the navigation: in groups, each with its sign and its key after `g`."""

from typing import NamedTuple


class NavigationEntry(NamedTuple):
    address: str
    title: str
    icon: str
    key: str


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
