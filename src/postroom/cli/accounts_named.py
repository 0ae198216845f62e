"""Finds the account that a command names."""

from typing import TYPE_CHECKING

from postroom.cli.running import with_database

if TYPE_CHECKING:
    from postroom.cli.application import Application
    from postroom.settings.reading import Settings
    from postroom.store.accounts import AccountView


def account_named(application: "Application", settings: "Settings", name: str) -> "AccountView":
    from postroom.manage.accounts import find_account

    return with_database(application, settings, lambda database: find_account(database, name))
