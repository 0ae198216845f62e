"""`users.settings`: send-as addresses, filters and the vacation responder."""

from postroom_sandbox.account import Call, Endpoint, Json
from postroom_sandbox.filters import Action, Criteria
from postroom_sandbox.refusal import invalid
from postroom_sandbox.requests import flag_in, int32_in, json_body, object_in, text_in, texts_in
from postroom_sandbox.vacation import FLAGS, TEXTS, TIMES

CRITERIA = (
    "from", "to", "subject", "query", "negatedQuery", "hasAttachment", "excludeChats", "size", "sizeComparison",
)  # fmt: skip
COMPARISONS = ("unspecified", "smaller", "larger")


async def list_send_as(call: Call) -> Json:
    call.parameters()
    return {"sendAs": call.account.send_as.as_json()}


async def get_send_as(call: Call) -> Json:
    call.parameters()
    return call.account.send_as.get(call.named("sendAsEmail"))


async def list_filters(call: Call) -> Json:
    """All filters. The answer has them in `filter`, not in `filters`."""
    call.parameters()
    return {"filter": [each.as_json() for each in call.mailbox.filters.all()]}


async def get_filter(call: Call) -> Json:
    call.parameters()
    return call.mailbox.filters.get(call.named()).as_json()


async def create_filter(call: Call) -> Json:
    call.parameters()
    fields = await json_body(call.request, "id", "criteria", "action")
    criteria = object_in(fields, "criteria", *CRITERIA)
    action = object_in(fields, "action", "addLabelIds", "removeLabelIds", "forward")
    created = call.mailbox.filters.create(
        Criteria(
            text_in(criteria, "from").strip(),
            text_in(criteria, "to").strip(),
            " ".join(text_in(criteria, "subject").split()),
            text_in(criteria, "query").strip(),
            text_in(criteria, "negatedQuery").strip(),
            flag_in(criteria, "hasAttachment"),
            flag_in(criteria, "excludeChats"),
            int32_in(criteria, "size"),
            _comparison(criteria),
        ),
        Action(
            tuple(dict.fromkeys(texts_in(action, "addLabelIds"))),
            tuple(dict.fromkeys(texts_in(action, "removeLabelIds"))),
            text_in(action, "forward"),
        ),
    )
    return created.as_json()


async def delete_filter(call: Call) -> Json:
    call.parameters()
    call.mailbox.filters.delete(call.named())
    return {}


async def get_vacation(call: Call) -> Json:
    call.parameters()
    return call.account.vacation.as_json()


async def update_vacation(call: Call) -> Json:
    call.parameters()
    call.account.vacation.update(await json_body(call.request, *FLAGS, *TEXTS, *TIMES))
    return call.account.vacation.as_json()


def _comparison(criteria: Json) -> str:
    given = text_in(criteria, "sizeComparison") or "unspecified"
    if given not in COMPARISONS:
        raise invalid(f"Invalid value at 'filter.criteria.size_comparison' (TYPE_ENUM), \"{given}\"")
    return "" if given == "unspecified" else given


ENDPOINTS: dict[str, Endpoint] = {
    "settings.sendAs.list": list_send_as,
    "settings.sendAs.get": get_send_as,
    "settings.filters.list": list_filters,
    "settings.filters.get": get_filter,
    "settings.filters.create": create_filter,
    "settings.filters.delete": delete_filter,
    "settings.getVacation": get_vacation,
    "settings.updateVacation": update_vacation,
}
