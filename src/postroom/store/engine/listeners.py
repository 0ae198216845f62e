"""The listeners on each channel in this process, and waiting for a signal."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable


async def signalled(signal: asyncio.Event, seconds: float) -> bool:
    """Wait for the signal, at most this long. (`asyncio.wait_for` of Python 3.11 can lose a cancellation.)"""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await signal.wait()
    return signal.is_set()


class Listener:
    """One subscription; closing it twice is harmless."""

    def __init__(self, listeners: "Listeners", channel: str, callback: Callable[[str], None]) -> None:
        self._listeners = listeners
        self.channel = channel
        self.callback = callback

    def close(self) -> None:
        self._listeners.forget(self)


class Listeners:
    """Calls back every listener on a channel, on the event loop."""

    def __init__(self) -> None:
        self._channels: dict[str, list[Listener]] = defaultdict(list)

    def add(self, channel: str, callback: Callable[[str], None]) -> Listener:
        listener = Listener(self, channel, callback)
        self._channels[channel].append(listener)
        return listener

    def forget(self, listener: Listener) -> None:
        if listener in self._channels[listener.channel]:
            self._channels[listener.channel].remove(listener)

    def channels(self) -> list[str]:
        return [channel for channel, listeners in self._channels.items() if listeners]

    def call(self, channel: str, message: str) -> None:
        for listener in list(self._channels[channel]):
            listener.callback(message)
