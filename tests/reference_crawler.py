"""Reference HTTP client and crawler of embedded webs: slow, obvious, independent of the code under test."""

from __future__ import annotations

import http.client
from urllib.parse import urldefrag, urljoin, urlsplit

from protego import Protego
from selectolax.lexbor import LexborHTMLParser

from surveyor.testing import EmbeddedWeb, Truth

TIMEOUT = 10.0
AGENT = "surveyor/0.1 (+https://survey.example/)"


class Clock:
    """Clock that advances by a step on every reading."""

    def __init__(self, step: float = 0.0) -> None:
        self.now, self.step = 1000.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class Client:
    """Connection to an embedded web."""

    def __init__(self, web: EmbeddedWeb) -> None:
        self.web = web
        self.connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=TIMEOUT)

    def get(self, url: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(url)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            self.connection.request(method, target, headers={"Host": parts.netloc, "User-Agent": AGENT, **given})
            answer = self.connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        except (ConnectionError, http.client.BadStatusLine):
            self.connection.close()
            return 0, {}, b""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()


def url_of_kind(truth: Truth, kind: str) -> str:
    return truth.urls[truth.kinds.index(kind)]


def host_of_role(web: EmbeddedWeb, role: str) -> str:
    return next(host for host, name in web.plan.roles.items() if name == role)


def host_of_style(web: EmbeddedWeb, style: str) -> str:
    return next(host for host, file in web.plan.robots.items() if file.style == style)


def links_in(body: bytes, url: str) -> tuple[list[str], str]:
    """Return the distinct followed links and the canonical URL."""
    page = LexborHTMLParser(body)
    base, canonical = page.css_first("base"), page.css_first('link[rel="canonical"]')
    root = url if base is None else urljoin(url, base.attributes["href"])
    found = []
    for anchor in page.css("a[href]"):
        if "nofollow" not in (anchor.attributes.get("rel") or ""):
            parts = urlsplit(urldefrag(urljoin(root, anchor.attributes["href"] or "#"))[0])
            found.append(parts._replace(netloc=parts.netloc.lower()).geturl())
    own = [link for link in dict.fromkeys(found) if link.startswith("http://") and link not in (url, root)]
    return own, "" if canonical is None else urljoin(root, canonical.attributes["href"])


def domain(url: str) -> str:
    return ".".join((urlsplit(url).hostname or "").split(".")[-2:])


class Explorer:
    """Slow, obvious crawler: its results over HTTP must equal the ground truth."""

    def __init__(self, client: Client) -> None:
        self.client, self.web = client, client.web
        self.rules: dict[str, Protego | None] = {}
        self.found: dict[str, tuple[str, list[str]]] = {}  # URL -> status, and its links or where it moved

    def patient(self, url: str) -> tuple[int, dict[str, str], bytes]:
        for _ in range(3):
            answer = self.client.get(url)
            if answer[0] not in (0, 404, 429, 500, 503):
                break
        return answer

    def may_read(self, url: str) -> bool:
        parts = urlsplit(url)
        if parts.netloc not in self.rules:
            status, headers, body = self.patient(f"http://{parts.netloc}/robots.txt")
            if status == 302:
                status, headers, body = self.patient(headers["location"])
            text = body.decode() if status == 200 else ""
            self.rules[parts.netloc] = None if status == 0 or status >= 500 else Protego.parse(text)
        rules = self.rules[parts.netloc]
        return rules is not None and rules.can_fetch(url, "surveyor")

    def look(self, url: str) -> tuple[str, list[str]]:
        if urlsplit(url).hostname not in self.web.resolver or not self.may_read(url):
            return "blocked", []
        status, headers, body = self.patient(url)
        if status in (301, 302, 308):
            return "redirected", [urljoin(url, headers["location"])]
        if status in (404, 410):
            return "gone", []
        if status != 200:
            return "blocked", []
        links, canonical = links_in(body[:2_000_000], url)
        if canonical not in ("", url) and domain(canonical) == domain(url):
            return "redirected", [canonical]
        return "fetched", links if headers["content-type"].startswith("text/html") else []

    def explore(self) -> None:
        queue = list(self.web.seeds)
        for url in queue:
            if url not in self.found:
                self.found[url] = self.look(url)
                queue += self.found[url][1]
