"""The Discord message that asks for approval: an embed that says what, to whom and why, and the buttons below it.

Text from mail, or from a model that read it, is in code quotes: Discord shows that verbatim, without links, mentions
and formatting.
"""

from typing import Any

from postroom.store.actions.approvals import Approval
from postroom.triage.act.approval_notice import LONGEST_ADDRESS, MOST_RECIPIENTS, ApprovalNotice, notice_of
from postroom.triage.act.discord_buttons import ButtonIds
from postroom.triage.act.discord_library import discord
from postroom.triage.act.webhook import page_of

_ASKS = 0xE0A030
_DONE = 0x3BA55D
_NOT_DONE = 0x8A8A8A
MOST_REASONS = 5


def message_embed(approval: Approval) -> discord.Embed:
    """Ask while the action waits; show the answer afterwards."""
    notice = notice_of(approval)
    if notice.answer is None:
        title, colour = "May Postroom do this?", _ASKS
    else:
        title, colour = "Answered", _DONE if approval.approved_by is not None else _NOT_DONE
    embed = discord.Embed(title=title, colour=colour)
    embed.add_field(name="What", value=quoted(notice.what), inline=False)
    embed.add_field(name="Mail", value=f"From {quoted(notice.sender)}\nSubject {quoted(notice.subject)}", inline=False)
    if notice.to_whom:
        embed.add_field(name="Goes to", value=_recipients(notice), inline=False)
    if notice.content is not None:
        embed.add_field(name="With", value=quoted_block(notice.content), inline=False)
    embed.add_field(name="Why", value=_why(notice), inline=False)
    if notice.answer is not None:
        embed.add_field(name="Answer", value=quoted(notice.answer), inline=False)
    elif not notice.is_whole:
        embed.add_field(name="Not all of it is shown here", value=_look_elsewhere(approval), inline=False)
    if notice.answer is None and notice.expires_at is not None:
        embed.add_field(name="Expires", value=f"<t:{int(notice.expires_at.timestamp())}:R>", inline=False)
    embed.add_field(name="Mailbox", value=quoted(approval.account), inline=False)
    embed.set_footer(text=footer(approval))
    return embed


def footer(approval: Approval) -> str:
    """Return the footer by which an action's notice is found again."""
    return f"Action {approval.id}"


def message_view(approval: Approval, buttons: ButtonIds, public_url: str | None) -> discord.ui.View:
    """Build the buttons Approve, Reject and Open; the first two are disabled once there is an answer.

    Nobody can approve what they were not shown: unless the message contains all of it, there is no Approve.
    """
    view = discord.ui.View(timeout=None)
    answered = not approval.is_waiting
    if notice_of(approval).is_whole:
        view.add_item(_button("Approve", discord.ButtonStyle.success, buttons.sign("approve", approval), answered))
    view.add_item(_button("Reject", discord.ButtonStyle.danger, buttons.sign("reject", approval), answered))
    if (page := page_of(public_url)) is not None:
        view.add_item(discord.ui.Button(label="Open", url=page))
    # The library must not remember the buttons: presses are understood by their ids, even after a restart.
    view.stop()
    return view


def _button(label: str, style: discord.ButtonStyle, custom_id: str, answered: bool) -> discord.ui.Button[Any]:
    return discord.ui.Button(label=label, style=style, custom_id=custom_id, disabled=answered)


def _look_elsewhere(approval: Approval) -> str:
    return f"Review and approve it with `postroom approvals approve {approval.id}`; here you can only reject it."


def quoted(text: str, longest: int = 300) -> str:
    """Return the text on one line, in code quotes that nothing can break out of."""
    return f"`{_plain(text, longest) or ' '}`"


def quoted_block(text: str, longest: int = 900) -> str:
    return f"```\n{_plain(text, longest)}\n```"


def _plain(text: str, longest: int) -> str:
    plain = text.replace("`", "\N{MODIFIER LETTER GRAVE ACCENT}")
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def _recipients(notice: ApprovalNotice) -> str:
    shown = [quoted(each, LONGEST_ADDRESS) for each in notice.to_whom[:MOST_RECIPIENTS]]
    left = len(notice.to_whom) - MOST_RECIPIENTS
    return "\n".join([*shown, f"and {left} more"] if left > 0 else shown)


def _why(notice: ApprovalNotice) -> str:
    lines = [f"Decided by {quoted(notice.decided_by, 150)}", *(quoted(each, 140) for each in notice.why[:MOST_REASONS])]
    return "\n".join(lines)
