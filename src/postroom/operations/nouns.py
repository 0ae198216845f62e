"""The nouns of the table of operations, in the order in which references list them."""

from postroom.operations.operation import Noun, Operation, Run

SESSION = Noun("The caller")
OVERVIEW = Noun("Overview")
MAIL = Noun("Mail and events")
APPROVALS = Noun("Approvals")
RULES = Noun("Rules")
FILTERS = Noun("Filters and tiers")
CONNECTORS = Noun("Connectors")
BACKFILL = Noun("Backfills")
QUEUES = Noun("Queues")
JOBS = Noun("Jobs")
OUTBOUND = Noun("Outgoing mail")
AUDIT = Noun("Audit")
SETTINGS = Noun("Settings")
NOUNS = (
    SESSION,
    OVERVIEW,
    MAIL,
    APPROVALS,
    RULES,
    FILTERS,
    CONNECTORS,
    BACKFILL,
    QUEUES,
    JOBS,
    OUTBOUND,
    AUDIT,
    SETTINGS,
)


def operation_of(run: Run) -> Operation:
    """The operation that this function is."""
    return next(each for noun in NOUNS for each in noun.operations if each.run is run)
