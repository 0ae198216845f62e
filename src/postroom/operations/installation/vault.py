"""The vault of this installation, from the settings."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from postroom.settings.reading import Settings
    from postroom.vault.sealing import Vault


def vault_of(settings: "Settings") -> "Vault":
    from postroom.vault.sealing import Vault

    key = settings.secret_key
    return Vault(settings.data_dir, None if key is None else key.get_secret_value())
