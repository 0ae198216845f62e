"""`postroom dkim`: the keys that sign outgoing mail of a domain."""

from typing import Annotated, Literal

import typer

from postroom.interfaces.cli.session import Session, command_group

app = command_group("Make keys that sign outgoing mail of a domain; list or remove them.")

COLUMNS = ("domain", "selector", "algorithm", "created_at", "name", "record")

Domain = Annotated[str, typer.Argument(metavar="DOMAIN", help="The domain in From, such as example.com.")]
Selector = Annotated[str, typer.Argument(metavar="SELECTOR", help="The name of the key, such as s1.")]


@app.command()
def add(
    session: Session,
    domain: Domain,
    selector: Selector,
    algorithm: Annotated[
        Literal["rsa-sha256", "ed25519-sha256"],
        typer.Option("--algorithm", help="rsa-sha256, which everybody checks, or ed25519-sha256."),
    ] = "rsa-sha256",
) -> None:
    """Make a key, and print the record that belongs in the DNS. Mail is signed with the key from then on."""
    from postroom.operations.installation.vault import vault_of
    from postroom.operations.outbound.destinations import add_dkim

    made = session.act(add_dkim, vault_of(session.settings), domain, selector, algorithm)
    session.show_line(made, f'{made.name}. IN TXT "{made.record}"')


@app.command("list")
def list_(session: Session) -> None:
    """List the keys, with their records."""
    from postroom.operations.outbound.destinations import list_dkim

    session.show_list(session.call(list_dkim), COLUMNS)


@app.command()
def remove(session: Session, domain: Domain, selector: Selector) -> None:
    """Forget a key: mail is signed with the other keys of the domain, or not at all."""
    from postroom.operations.outbound.destinations import remove_dkim

    session.act(remove_dkim, domain, selector)
    session.show_result(f"{selector}._domainkey.{domain}", "removed")
