"""What everything outside may know of mailboxes in folders."""

from postroom.core.mail.providers import ProviderFacts

NAME = "folders"
FACTS = ProviderFacts(NAME, "in folders")
