"""Words for the road of messages, from who decided to where they ended."""

from collections.abc import Mapping

from postroom.core.actions.action import SPECS
from postroom.words.actions import kind_done

TITLES = ("Came in", "Tier, and its wait", "Decided", "Done")
DECIDERS: Mapping[str, str] = {
    "rule": "By rule",
    "model": "By the model",
    "nobody": "No rule matched",
    "agents": "Agents’ queue",
}
ENDINGS: Mapping[str, str] = {
    "ask": "Need approval",
    **{name: kind_done(name) for name in ("none", *SPECS, "several")},
    "done": "Taken by agents",
    "coalesced": "Joined with others",
    "auto_acked": "Expired",
    "failed": "Failed",
}
