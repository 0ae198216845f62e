"""Words for problems: why a page cannot be shown, and why a message waits for its decision."""

from collections.abc import Mapping

PAGE_ERRORS: Mapping[int, tuple[str, str]] = {
    400: ("Not understood", "A part of this address makes no sense."),
    401: ("Signed out", "Sign in again, then open the page again."),
    403: ("Not allowed", "This is only accepted from Postroom's own page."),
    404: ("Nothing here", "There is no page at this address."),
    405: ("Not possible", "This address does not accept that kind of request."),
    500: ("Something went wrong", "Postroom could not create this page. Its log has the cause."),
    503: ("Not available right now", "Postroom cannot read its data at the moment. Your mail is safe; try again soon."),
}
UNKNOWN_PAGE_ERROR = ("Not possible", "Postroom could not answer this request.")
HELD_BACKFILL: Mapping[str, str] = {
    "capped": "the backfill that brought this message in has reached its cap for today; it is decided tomorrow",
    "paused": "the backfill that brought this message in is paused; it is decided when that is resumed",
    "cancelled": "the backfill that brought this message in was canceled, so no model is asked about it",
}
