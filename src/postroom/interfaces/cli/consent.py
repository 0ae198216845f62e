"""How the owner gets to a provider's consent page from the command line, and the code from there back."""

import webbrowser
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from postroom.mailboxes.oauth.consent import ConsentRequest
    from postroom.operations.accounts.accounts import AccountView
    from postroom.operations.accounts.connecting import Begin

PATIENCE_S = 600


class _Dialog:
    """The steps that both ways to get consent share."""

    def renewing(self, account: "AccountView") -> None:
        level = f", level {account.consent.level}" if account.consent else ""
        typer.echo(
            f"{account.email} is already connected ({account.id}, {account.state}{level}): "
            "its consent is renewed; no second account is created.",
            err=True,
        )


class Browsing(_Dialog):
    """Receive the code from the browser, which the provider redirects to a page on this machine."""

    async def code(self, begin: "Begin") -> "tuple[ConsentRequest, str]":
        import asyncio

        from postroom.mailboxes.oauth.loopback import listening

        async with listening() as loopback:
            request = begin(loopback.redirect_uri)
            loopback.expect(request)
            typer.echo(f"{request.authority.name} asks for your consent at this address:\n\n{request.url}\n", err=True)
            opened = await asyncio.to_thread(webbrowser.open, request.url)
            hint = (
                "It opens in your browser." if opened else "Open it in a browser on this machine, or use --no-browser."
            )
            typer.echo(hint, err=True)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    return request, await loopback.code()
            except TimeoutError:
                raise request.authority.consent_refused("no answer came within 10 minutes; start again") from None


class Pasting(_Dialog):
    """Ask the user to paste the code: the browser is on another machine and stops at an unreachable address."""

    async def code(self, begin: "Begin") -> "tuple[ConsentRequest, str]":
        from postroom.mailboxes.oauth.consent import NOWHERE, answer_in

        request = begin(NOWHERE)
        typer.echo(f"Open this address in any browser, and give your consent:\n\n{request.url}\n", err=True)
        typer.echo("The browser then stops at a page that cannot be reached. Its address contains the code.", err=True)
        return request, answer_in(request, typer.prompt("Paste that address, or the code", err=True))
