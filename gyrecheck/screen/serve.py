"""The screen in a browser through textual-serve: loopback only unless told otherwise, and only with the random token of the URL."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware
from textual_serve.server import Server

COOKIE = "gyrecheck_token"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class GuardedServer(Server):
    """textual-serve behind a token: without it every path answers 403."""

    def __init__(self, command: str, host: str, port: int, token: str) -> None:
        super().__init__(command, host=host, port=port, title="gyrecheck watch")
        self.token = token
        self._sockets: set[asyncio.Task[object]] = set()

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(guard(self.token))
        app.middlewares.append(self._remembered())
        return app

    def _remembered(self) -> Middleware:
        """A middleware that keeps the open sockets' tasks, so that leaving need not wait for a browser."""

        @web.middleware
        async def keep(request: web.Request, handler: Handler) -> web.StreamResponse:
            task = asyncio.current_task()
            if task is None or request.path != "/ws":
                return await handler(request)
            self._sockets.add(task)
            try:
                return await handler(request)
            finally:
                self._sockets.discard(task)

        return keep

    async def on_shutdown(self, app: web.Application) -> None:
        """End the screens of open browsers."""
        await super().on_shutdown(app)
        for task in tuple(self._sockets):
            task.cancel()


def guard(token: str) -> Middleware:
    """A middleware that lets in who shows `token` in the query once; a cookie of this server then stands for it."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked = request.query.get("token", "")
        if hmac.compare_digest(asked.encode(), token.encode()):
            response = await handler(request)
            if not response.prepared:
                response.set_cookie(COOKIE, token, httponly=True, samesite="Strict")
            return response
        if hmac.compare_digest(request.cookies.get(COOKIE, "").encode(), token.encode()):
            return await handler(request)
        return web.Response(status=403, text="this screen needs the token of the URL that gyrecheck printed\n")

    return check


def new_token() -> str:
    """32 random URL-safe signs."""
    return secrets.token_urlsafe(24)
