"""A stand-in for Discord's gateway: the WebSocket over which a bot receives events."""

import asyncio
import json
from typing import Any

from aiohttp import WSMsgType, web

HEARTBEAT_MS = 45_000
DISPATCH, HEARTBEAT, IDENTIFY, RESUME, RECONNECT, HELLO, HEARTBEAT_ACK = 0, 1, 2, 6, 7, 10, 11
AUTHENTICATION_FAILED = 4004

Json = dict[str, Any]


class Gateway:
    """Identifies every bot that connects, answers heartbeats, and sends events to all."""

    def __init__(self, token: str, bot: Json, application_id: str) -> None:
        self._token = token
        self._bot = bot
        self._application_id = application_id
        self._sockets: dict[web.WebSocketResponse, int] = {}
        self._connected = asyncio.Condition()
        self.address = ""
        self.identified = 0
        self.resumed = 0
        self.heartbeats = 0

    async def connect(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": HELLO, "d": {"heartbeat_interval": HEARTBEAT_MS}, "s": None, "t": None})
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await self._take(socket, json.loads(message.data))
        finally:
            self._sockets.pop(socket, None)
        return socket

    async def until_connected(self, sessions: int = 1) -> None:
        """Wait until that many sessions have been started or resumed, and one of them is open."""
        async with self._connected:
            await self._connected.wait_for(lambda: self.identified + self.resumed >= sessions and bool(self._sockets))

    async def dispatch(self, event: str, data: Json) -> None:
        for socket in list(self._sockets):
            self._sockets[socket] += 1
            await socket.send_json({"op": DISPATCH, "t": event, "s": self._sockets[socket], "d": data})

    async def ask_to_reconnect(self) -> None:
        for socket in list(self._sockets):
            await socket.send_json({"op": RECONNECT, "d": None, "s": None, "t": None})

    async def close(self) -> None:
        for socket in list(self._sockets):
            await socket.close()

    async def _take(self, socket: web.WebSocketResponse, message: Json) -> None:
        match message["op"]:
            case 1:
                self.heartbeats += 1
                await socket.send_json({"op": HEARTBEAT_ACK, "d": None, "s": None, "t": None})
            case 2 | 6 if message["d"]["token"] != self._token:
                await socket.close(code=AUTHENTICATION_FAILED, message=b"Authentication failed.")
            case 2:
                self.identified += 1
                await self._begin(socket, "READY", self._ready())
            case 6:
                self.resumed += 1
                await self._begin(socket, "RESUMED", {})
            case _:
                pass

    async def _begin(self, socket: web.WebSocketResponse, event: str, data: Json) -> None:
        self._sockets[socket] = 1
        await socket.send_json({"op": DISPATCH, "t": event, "s": 1, "d": data})
        async with self._connected:
            self._connected.notify_all()

    def _ready(self) -> Json:
        return {
            "v": 10,
            "user": self._bot,
            "guilds": [],
            "session_id": "sandbox-session",
            "resume_gateway_url": self.address,
            "application": {"id": self._application_id, "flags": 0},
        }
