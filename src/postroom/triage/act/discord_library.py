"""The optional library `discord.py`: loaded if a bot is set up, and pointed at Discord's address."""

import warnings

from postroom.core.errors import SettingsError

try:
    with warnings.catch_warnings():
        # It can play audio through a deprecated Python module. We do not use that.
        warnings.simplefilter("ignore", DeprecationWarning)
        import discord as discord
        import discord.gateway
        import discord.http
except ImportError:
    raise SettingsError(
        "discord.token is set, but discord.py is not installed; run `pip install 'postroom[discord]'`, or unset it"
    ) from None

__all__ = ["LONGEST_WAIT_S", "TIMEOUT_S", "discord", "new_client", "point_at"]

TIMEOUT_S = 60.0
# A longer wait for Discord's rate limit is left to the job's retry.
LONGEST_WAIT_S = 30.0


def point_at(base_url: str, gateway_url: str) -> None:
    """Set Discord's address for every client of this process."""
    import yarl

    discord.http.Route.BASE = base_url
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(f"{gateway_url}/")


def new_client() -> discord.Client:
    """Return a client that receives presses and little else (the library needs its guilds), and mentions nobody."""
    return discord.Client(
        intents=discord.Intents(guilds=True),
        allowed_mentions=discord.AllowedMentions.none(),
        max_messages=None,
        member_cache_flags=discord.MemberCacheFlags.none(),
        chunk_guilds_at_startup=False,
        guild_ready_timeout=0,
        max_ratelimit_timeout=LONGEST_WAIT_S,
    )
