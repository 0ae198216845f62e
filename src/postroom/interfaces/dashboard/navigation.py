"""Where pages stand in the navigation: in groups, each with its sign and its key after `g`."""

from typing import NamedTuple


class Place(NamedTuple):
    address: str
    title: str
    icon: str
    key: str


class Group(NamedTuple):
    title: str
    places: tuple[Place, ...]


GROUPS = (
    Group(
        "",
        (
            Place("/", "Overview", "overview", "o"),
            Place("/mail", "Mail", "mail", "m"),
            Place("/approvals", "Approvals", "yes", "a"),
            Place("/rules", "Rules", "rules", "r"),
        ),
    ),
    Group(
        "Incoming",
        (
            Place("/connectors", "Connectors", "plug", "c"),
            Place("/backfill", "Backfill", "archive", "b"),
            Place("/filters", "Filters", "filter", "f"),
            Place("/queues", "Queues", "layers", "q"),
            Place("/jobs", "Jobs", "jobs", "j"),
        ),
    ),
    Group("Outgoing", (Place("/outbound", "Outbound", "send", "u"),)),
    Group("Admin", (Place("/audit", "Audit", "book", "t"), Place("/settings", "Settings", "gear", "s"))),
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
