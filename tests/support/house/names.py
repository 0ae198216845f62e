"""The names that the counts have to know: of folders, of packages, of fields, and of words. All else is found."""

SOURCES = "src"
PRODUCT = "postroom"
DOCUMENTS = ("*.md", "docs/**/*.md")
TEMPLATES = (".html", ".jinja", ".j2")
# The schema of a database and how it came about: statements of the product are elsewhere.
MIGRATIONS = frozenset({"migrations", "schema"})
DIALECTS = ("sqlite", "postgres")
COMMON = "common"
# A provider's own packages; its name may be written out there.
PROVIDERS = frozenset({"gmail", "imap"})

# Where a shape of mail is met: the first row with a folder or module that begins so. All else is on the way in.
WAYS = (
    ("sent", ("outbound", "submission", "smtp")),
    ("out", ("api", "cli", "dashboard", "interfaces", "manage", "operations", "store", "tools", "web", "words")),
)
IN = "in"
MESSAGE_IDS = frozenset(
    {"id", "message_id", "provider_message_id", "gmail_id", "short_id", "inbox_id", "uid", "source_key", "path"}
)
SENDERS = frozenset({"sender", "from", "from_", "author", "envelope_sender"})
SUBJECT = "subject"
# Two of these are a message too: as its provider gives it, or as it is read. Rows are what goes by several names.
CONTENTS = (
    {"headers", "payload"},
    {"labels", "label_ids"},
    {"raw", "mime"},
    {"snippet", "body_text", "normalized_text", "text"},
    {"attachments", "has_attachment"},
)
# A question about mail has the same fields and is no mail.
QUESTIONS = ("Query", "Filter")
# The field that contains the fields which strangers wrote.
NESTED = "untrusted"

BASES_WITH_FIELDS = frozenset({"NamedTuple", "TypedDict", "BaseModel"})
DECORATOR_OF_FIELDS = "dataclass"

# Participles that do not end in "ed" or "en" (but not those that are verbs as well, such as `read`), and words that end
# so and are none.
IRREGULAR = (
    "bound|bought|brought|built|caught|dealt|done|drawn|fed|felt|found|gone|grown|heard|held|kept|known|laid|led|left|"
    "lent|lost|made|meant|met|paid|said|sent|shown|sold|sought|spent|stood|thought|thrown|told|torn|understood|won|worn"
)
NO_PARTICIPLES = (
    "bed|between|children|embed|even|exceed|feed|happen|hundred|indeed|listen|need|often|open|flatten|proceed|red|screen|seed|seven|"
    "shed|speed|ten|then|token|when"
)
AVOIDED = {
    "what is/was … as a noun": r"\bwhat (?:is|was|are|were)\b",
    "nobody": r"\bnobody\b",
    "told": r"\btold\b",
}
AVOIDED_BEGINNINGS = ("What", "Whoever", "Nobody")
