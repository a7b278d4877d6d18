"""The server of the explorer: the page, and an explorer for each tab behind it. It is for browsers on this machine alone."""

import json
import logging
import re
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from kspec.cli.explorer.page import PAGE, page_for
from kspec.cli.explorer.sessions import Sessions, error
from kspec.model_check.explorer.errors import in_short

NAMES = ("127.0.0.1", "localhost", "[::1]")
"""The names of this machine. Any other in `Host` means that somebody has let a name of his point here."""

MOST_BYTES = 1 << 20
"""Bytes of a message at most; an address of a run of 1,000 steps has about a tenth."""

SESSION = re.compile(r"[A-Za-z0-9_-]{8,64}")

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline';"
    " object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
}
"""Headers of every answer."""


class _RefusedRequestError(Exception):
    """A request that is not served: its status and the error that is told."""

    def __init__(self, status: int, kind: str, words: str) -> None:
        super().__init__(words)
        self.status, self.kind = status, kind


class OwnMachineOnly:
    """Refuses requests that name another machine, or that pages of others make: a page elsewhere may try to ask here."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        refused = foreign(Headers(scope=scope))
        marks = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

        async def send_marked(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *marks]
            await send(message)

        if refused is not None:
            await JSONResponse(error("refused", refused), 403)(scope, receive, send_marked)
        else:
            await self.app(scope, receive, send_marked)


def foreign(headers: Mapping[str, str]) -> str | None:
    """The reason why a request is not one of this server's own pages, if it is not."""
    host = headers.get("host", "")
    name, _, port = host.rpartition(":") if re.search(r":\d+$", host) else (host, "", "")
    if name.lower() not in NAMES:
        return f"this server answers as {', '.join(NAMES)} only, not as {host[:100]!r}"
    origin = headers.get("origin")
    if origin is not None and origin.lower() not in {f"http://{one}{f':{port}' if port else ''}" for one in NAMES}:
        return f"this server answers its own pages only, not those of {origin[:100]!r}"
    if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
        return "this server answers its own pages only"
    return None


def application(back_end: Mapping[str, Any], page: Path = PAGE, sessions: Sessions | None = None) -> Starlette:
    """The server as an ASGI application. `back_end` is what the page is told besides: the address to open, for instance."""
    held = sessions or Sessions()

    async def message(request: Request) -> Response:
        name, body = _session(request), await _body(request)
        return JSONResponse(await held.answer(name, body, request.is_disconnected))

    async def cancel(request: Request) -> Response:
        return JSONResponse(held.cancel(_session(request)))

    async def progress(request: Request) -> Response:
        return JSONResponse(held.progress(_session(request)))

    async def index(request: Request) -> Response:
        return HTMLResponse(page_for({"kind": "server", **back_end}, page))

    async def refused(request: Request, raised: Exception) -> Response:
        assert isinstance(raised, _RefusedRequestError)
        return JSONResponse(error(raised.kind, str(raised)), raised.status)

    async def unknown(request: Request, raised: Exception) -> Response:
        status = getattr(raised, "status_code", 404)
        words = f"{request.method} {request.url.path[:100]}: there is no such page here"
        return JSONResponse(error("bad-request", words), status)

    async def failed(request: Request, raised: Exception) -> Response:
        return JSONResponse(
            error("internal", in_short(f"an error that nobody expected: {type(raised).__name__}: {raised}")), 500
        )

    @asynccontextmanager
    async def living(app: Starlette) -> AsyncIterator[None]:
        yield
        await held.close()

    app = Starlette(
        routes=[
            Route("/", index),
            Route("/index.html", index),
            Route("/message", message, methods=["POST"]),
            Route("/cancel", cancel, methods=["POST"]),
            Route("/progress", progress, methods=["GET", "POST"]),
            Mount("/", StaticFiles(directory=page)),
        ],
        exception_handlers={_RefusedRequestError: refused, 404: unknown, 405: unknown, Exception: failed},
        lifespan=living,
    )
    app.add_middleware(OwnMachineOnly)
    return app


class ExplorerServer(uvicorn.Server):
    """The server until Ctrl-C, which ends what goes on first: a search, or a model that is made, and says nothing of it."""

    def __init__(self, back_end: Mapping[str, Any]) -> None:
        self._sessions = Sessions()
        served = application(back_end, sessions=self._sessions)
        super().__init__(
            uvicorn.Config(served, log_level="warning", access_log=False, timeout_graceful_shutdown=1, server_header=False)
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer whoever waits, and end."""
        self._sessions.end()
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


def _session(request: Request) -> str:
    name = request.query_params.get("session", "")
    if not SESSION.fullmatch(name):
        words = "a request names its session, 8 to 64 letters and digits: message?session=NAME"
        raise _RefusedRequestError(400, "bad-request", words)
    return name


async def _body(request: Request) -> Any:
    """The JSON of a request."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise _RefusedRequestError(415, "bad-request", f"a message is application/json, not {kind[:100]!r}")
    found = bytearray()
    try:
        async for part in request.stream():
            found += part
            if len(found) > MOST_BYTES:
                words = f"a message has {MOST_BYTES:,} bytes at most"
                raise _RefusedRequestError(413, "too-long", words)
    except ClientDisconnect as left:
        raise _RefusedRequestError(400, "bad-request", "the message has not come whole") from left
    try:
        return json.loads(found)
    except (ValueError, RecursionError) as wrong:
        words = "it is nested too deeply" if isinstance(wrong, RecursionError) else str(wrong)
        raise _RefusedRequestError(400, "bad-request", f"the message is not JSON: {words}") from wrong
