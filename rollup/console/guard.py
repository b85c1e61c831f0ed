"""Who may see the console: nobody else's pages and machines, and beyond this machine only who has logged in."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping, MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from rollup.core.errors import ConfigError
from rollup.gateway.servers.options import LOOPBACK

_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_LONGEST, _FORGOTTEN = 30.0, 600.0


class Guard:
    """The rules for one server. `users` are names with passwords; nobody needs one where only this machine can ask."""

    def __init__(self, host: str, users: Mapping[str, str], encrypted: bool) -> None:
        """Raises ConfigError where other machines can ask and nobody may log in."""
        self._local, self._users, self._encrypted = host in LOOPBACK, users, encrypted
        if not self._local and not users:
            raise ConfigError(
                f"other machines can reach the console on {host}, and nobody may log in",
                hint='name users: [serve.users] and then ann = { password_env = "ANN_PASSWORD" }',
            )
        self._failed: dict[str, tuple[int, float]] = {}

    @property
    def local(self) -> bool:
        """Whether only this machine can ask, so that nobody logs in."""
        return self._local

    def middleware(self) -> list[Middleware]:
        """What stands before all pages."""
        found = [
            Middleware(_Headers),
            Middleware(
                SessionMiddleware, secret_key=secrets.token_hex(32), session_cookie="rollup", same_site="strict",
                https_only=self._encrypted, max_age=12 * 3600,
            ),
        ]  # fmt: skip
        if self._local:  # another site whose name leads to this machine is no friend
            found.insert(1, Middleware(TrustedHostMiddleware, allowed_hosts=["localhost", "127.0.0.1", "[::1]"]))
        return found

    def known(self, request: Request) -> bool:
        """Whether a request may be answered."""
        return self._local or request.session.get("user") in self._users

    def user(self, request: Request) -> str | None:
        """Who has logged in."""
        return None if self._local else request.session.get("user")

    async def login(self, request: Request, user: str, password: str) -> bool:
        """Whether somebody may come in; after failures from an address, only after a delay that doubles."""
        address = request.client.host if request.client else "?"
        now = time.monotonic()
        self._failed = {at: (n, when) for at, (n, when) in self._failed.items() if now - when < _FORGOTTEN}
        times = self._failed.get(address, (0, 0.0))[0]
        self._failed[address] = times + 1, now
        if times:
            await asyncio.sleep(min(2 ** (times - 1) * 0.1, _LONGEST))
        expected = self._users.get(user, "")
        if secrets.compare_digest(password.encode(), expected.encode()) and expected:
            del self._failed[address]
            request.session["user"] = user
            return True
        return False


class _Headers:
    """Gives every answer the headers that browsers keep rules by, and refuses what other sites' pages ask."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope)
        if given.get("sec-fetch-site") == "cross-site" and given.get("sec-fetch-mode") != "navigate":
            await PlainTextResponse("another site's page may not ask here", 403)(scope, receive, send)
            return

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    if name != "Cache-Control" or not scope["path"].startswith("/static/"):
                        headers[name] = value
            await send(message)

        await self._app(scope, receive, sending)
