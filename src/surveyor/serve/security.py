"""Who may see and change what: the checks that every request passes before its page is made.

- The name in `Host` must be one of this server's names. A page elsewhere whose name was pointed at this address (DNS
  rebinding) is rejected, because it sends its own name.
- On an address that other machines reach, a token is needed: in the query of the first visit, which sets a cookie and
  redirects, or as `Authorization: Bearer TOKEN`. Wrong tokens are answered slowly, and after `MOST_FAILURES` a minute
  not compared at all.
- A GET or HEAD changes nothing. Another site can only link to a page: what it embeds or fetches is refused, because it
  could measure how long a query takes.
- A POST must come from this origin (`Sec-Fetch-Site`, `Origin`) and carry the secret that only pages of this server
  contain.
- Every response forbids scripts, styles, frames and connections that are not from this server (`HEADERS`).
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
import socket
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse

from surveyor.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

SHORTEST_TOKEN = 16  # characters
MOST_BODY = 65_536  # bytes of a form
MOST_FIELDS = 100
MOST_TARGET = 8_192  # bytes of path and query
MOST_FAILURES = 10  # wrong tokens in a minute, from all addresses together
FAILURE_DELAY = 0.5  # seconds before the answer to a wrong token
MINUTE = 60.0
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
SAFE = frozenset({"GET", "HEAD"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, a browser would send forms with the origin null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class Refused(Exception):
    """A request that is not answered; the message says why."""

    def __init__(self, status: int, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.status, self.why, self.hint = status, why, hint


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def token_for(host: str, given: str | None) -> str:
    """Return the token of a server: the given one, or for an address that other machines reach a new one."""
    if given is None:
        return "" if is_loopback(host) else secrets.token_urlsafe(24)
    if len(given) < SHORTEST_TOKEN or not given.isascii() or not given.isprintable() or " " in given:
        problem = f"--token must have at least {SHORTEST_TOKEN} visible ASCII characters, got {len(given)}"
        raise UsageError(problem, hint="leave it out, and an unguessable one is made for any address but this machine")
    return given


@dataclass(frozen=True, slots=True)
class Identity:
    """Where a server listens, and its secrets."""

    host: str
    port: int
    token: str = ""
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)  # value of the cookie
    form_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)  # of forms on its pages

    @property
    def cookie(self) -> str:
        """The name of the cookie; ports share cookies, so it has the port."""
        return f"surveyor-{self.port}"

    @property
    def url(self) -> str:
        """The address of the start page."""
        host = self.host if self.host not in ("0.0.0.0", "::") else socket.gethostname()  # noqa: S104  # only compared
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/"

    def is_own_name(self, authority: str) -> bool:
        """Return whether a `Host` header names this server.

        That is its address, an own name or, where tokens are needed, any address in numbers: a rebinding attack needs
        a name.
        """
        if set(authority) & set("/?#@"):
            return False
        try:
            parts = urlsplit(f"//{authority}")
            name, port = (parts.hostname or "").lower(), parts.port
        except ValueError:
            return False
        if (port or 80) != self.port:
            return False
        if is_loopback(self.host):
            return name in LOCAL_NAMES or name == self.host.lower().strip("[]")
        if name in (*LOCAL_NAMES, self.host.lower().strip("[]"), socket.gethostname().lower()):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


class Guard:
    """ASGI middleware that checks a request, and adds the headers to its response."""

    def __init__(self, app: ASGIApp, identity: Identity, refuse: Callable[[Request, Refused], Response]) -> None:
        self.app, self.identity, self._refuse = app, identity, refuse
        self._failures: deque[float] = deque(maxlen=MOST_FAILURES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    if name != "Cache-Control" or name not in headers:
                        headers[name] = value
            await send(message)

        try:
            response = await self._check(scope)
        except Refused as refused:
            from starlette.requests import Request

            response = self._refuse(Request(scope), refused)
        await (self.app if response is None else response)(scope, receive, protected)

    async def _check(self, scope: Scope) -> Response | None:
        """Raise Refused, or return the redirect of a first visit with the token, or None."""
        headers, query = Headers(scope=scope), scope.get("query_string", b"")
        if len(scope.get("raw_path") or b"") + len(query) > MOST_TARGET:
            raise Refused(414, f"The address is longer than {MOST_TARGET:,} bytes.")
        if len(headers.getlist("host")) != 1 or not self.identity.is_own_name(headers["host"]):
            raise Refused(
                421,
                "This server does not have the name that the request was sent to.",
                f"open {self.identity.url} instead",
            )
        if scope["method"] not in SAFE:
            self._check_origin(headers)
        elif headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            self._check_visit(headers, query)
        return await self._check_token(scope, headers, query) if self.identity.token else None

    def _check_origin(self, headers: Headers) -> None:
        """Refuse a change that another site asks for, or that does not say where it comes from."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is None and origin is None:
            raise Refused(403, "A change needs an Origin header.", "open the page and use its form")
        if site not in (None, "same-origin"):
            raise Refused(403, "Another site asked for this change; nothing was changed.")
        if origin is not None and origin.lower() != f"http://{headers['host'].lower()}":
            raise Refused(403, "Another site asked for this change; nothing was changed.")

    def _check_visit(self, headers: Headers, query: bytes) -> None:
        """Refuse what another site embeds or reads: it could infer the content of a survey from the time of an answer.

        A link is followed, unless it brings a query for the tables, which would run.
        """
        is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if not is_link or "q" in dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)):
            raise Refused(403, "Another site asked for this page.", "type the address, or open it from this server")

    async def _check_token(self, scope: Scope, headers: Headers, query: bytes) -> Response | None:
        if same(_cookie(headers, self.identity.cookie), self.identity.session):
            return None
        given = dict(parse_qsl(query.decode("latin-1"))).get("token")
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        presented = given if given is not None else bearer if scheme.lower() == "bearer" else None
        if presented is None:
            raise Refused(401, "This server needs its token.", "open the address that `surveyor serve` printed")
        now = time.monotonic()
        while self._failures and now - self._failures[0] > MINUTE:
            self._failures.popleft()
        if len(self._failures) >= MOST_FAILURES:
            raise Refused(429, "There were too many wrong tokens.", "try again in a minute")
        if not same(presented, self.identity.token):
            self._failures.append(now)
            await asyncio.sleep(FAILURE_DELAY)
            raise Refused(401, "The token is wrong.", "open the address that `surveyor serve` printed")
        if given is None:
            return None
        rest = [(name, value) for name, value in parse_qsl(query.decode("latin-1")) if name != "token"]
        path = "/" + scope["path"].lstrip("/\\")  # "//host" would lead elsewhere
        answer = RedirectResponse(f"{path}?{urlencode(rest)}" if rest else path, 303)
        answer.set_cookie(self.identity.cookie, self.identity.session, path="/", httponly=True, samesite="strict")
        return answer


def same(one: str, other: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


def _cookie(headers: Headers, name: str) -> str:
    for part in headers.get("cookie", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return ""


async def read_form(request: Request, identity: Identity) -> dict[str, str]:
    """Return the fields of a posted form; refuse it without the secret of this server's forms."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise Refused(415, "A form must be sent as application/x-www-form-urlencoded.")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BODY:
            raise Refused(413, f"The form is larger than {MOST_BODY:,} bytes.")
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:
        raise Refused(400, "The form cannot be read.") from None
    form = dict(pairs)
    if not same(form.pop("secret", ""), identity.form_secret):
        raise Refused(
            403, "The form is from an earlier run of this server.", "open the page again and repeat the change"
        )
    return form
