"""Google for tests: the emulator behind real HTTP, and a browser whose user consents at once."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass
from datetime import datetime
from random import Random

import httpx2

from postroom.mailboxes.gmail.oauth import GoogleApp, GoogleOAuth, begin_consent
from postroom.mailboxes.gmail.scopes import Level
from postroom.mailboxes.oauth.consent import answer_in
from postroom.mailboxes.oauth.tokens import Grant
from postroom_sandbox.consent import CLIENT_ID, CLIENT_SECRET
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox, utc_now
from postroom_sandbox.server import running_emulator
from support.patience import PATIENCE_S

ADA, BOB = "ada@example.com", "bob@example.com"
REDIRECT = "http://127.0.0.1:1/"


@dataclass
class Google:
    """The emulator, and where it answers."""

    emulator: Emulator
    address: str

    @property
    def app(self) -> GoogleApp:
        root = self.address
        return GoogleApp(CLIENT_ID, CLIENT_SECRET, f"{root}/o/oauth2/v2/auth", f"{root}/token", f"{root}/revoke")

    def settings(self) -> dict[str, str]:
        """As the environment gives them."""
        return {
            "POSTROOM_GOOGLE_CLIENT_ID": CLIENT_ID,
            "POSTROOM_GOOGLE_CLIENT_SECRET": CLIENT_SECRET,
            "POSTROOM_GOOGLE_AUTH_URL": self.app.auth_url,
            "POSTROOM_GOOGLE_TOKEN_URL": self.app.token_url,
            "POSTROOM_GOOGLE_REVOKE_URL": self.app.revoke_url,
            "POSTROOM_GMAIL_BASE_URL": self.address,
        }

    async def consent(self, oauth: GoogleOAuth, level: Level = "organise", email: str = ADA) -> Grant:
        """What a user's visit to Google's page leads to."""
        request = begin_consent(self.app, REDIRECT, level, email)
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as browser:
            sent_back = (await browser.get(request.url)).headers["location"]
        return await oauth.exchange(request, answer_in(request, sent_back))


def emulator(clock: Callable[[], datetime] = utc_now) -> Emulator:
    """Two users with mailboxes."""
    built = Emulator(Mailbox(ADA, Random(1), clock), "sandbox-token")
    built.add(Mailbox(BOB, Random(2), clock))
    return built


@contextlib.asynccontextmanager
async def running_google(clock: Callable[[], datetime] = utc_now) -> AsyncGenerator[Google]:
    built = emulator(clock)
    async with running_emulator(built) as address:
        yield Google(built, address)


@contextlib.contextmanager
def google_in_a_thread() -> Generator[Google]:
    """For tests of the command line, each run of which has an event loop of its own."""
    ready, found, stop = threading.Event(), list[Google](), list[Callable[[], object]]()

    async def serve() -> None:
        async with running_google() as google:
            stopping = asyncio.Event()
            loop = asyncio.get_running_loop()
            stop.append(lambda: loop.call_soon_threadsafe(stopping.set))
            found.append(google)
            ready.set()
            await stopping.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait(30)
    try:
        yield found[0]
    finally:
        stop[0]()
        thread.join()


def agreeing_browser(visited: list[str]) -> Callable[[str], bool]:
    """What `webbrowser.open` does for a user who agrees: goes to Google, and follows to where it is sent back."""

    def open_(url: str) -> bool:
        page = httpx2.get(url, follow_redirects=True, timeout=PATIENCE_S)
        visited.append(page.text)
        return True

    return open_
