"""The screen in a browser through textual-serve: loopback only unless told otherwise, and only with the random token of the URL."""

from __future__ import annotations

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

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(guard(self.token))
        return app


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
