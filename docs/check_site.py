"""Check that the built documentation site loads nothing from another host.

    python docs/check_site.py build/site

Pages may link elsewhere; scripts, styles, fonts and images must be files of the site.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

LOADED = {"src", "srcset", "data", "poster"}  # attributes that a browser loads
CSS_URL = re.compile(r"""(?:url\(|@import)\s*["']?\s*((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)
OTHER_HOST = re.compile(r"\s*(?:https?:)?//", re.IGNORECASE)


class Resources(HTMLParser):
    """Collects the resources of other hosts that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.external: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record URLs of other hosts in attributes that are loaded."""
        self._in_style = tag == "style"
        for name, value in attrs:
            loads = name in LOADED or (name in ("href", "xlink:href") and tag in ("link", "image", "use", "script"))
            if loads and value and OTHER_HOST.match(value):
                self.external.append(value)
            if name == "style" and value:
                self.external += CSS_URL.findall(value)

    def handle_data(self, data: str) -> None:
        """Record URLs of other hosts in embedded style sheets."""
        if self._in_style:
            self.external += CSS_URL.findall(data)


def external_resources(site: Path) -> list[str]:
    """Return "file: URL" for every resource of another host that a page or style sheet of the site loads."""
    found = []
    for file in sorted(site.rglob("*")):
        if file.suffix in (".html", ".svg"):
            page = Resources()
            page.feed(file.read_text("utf-8"))
            found += [f"{file.relative_to(site)}: {url}" for url in page.external]
        elif file.suffix == ".css":
            found += [f"{file.relative_to(site)}: {url}" for url in CSS_URL.findall(file.read_text("utf-8"))]
    return found


def main() -> None:
    """Exit with the list of external resources, if there are any."""
    site = Path(sys.argv[1])
    if not (site / "index.html").is_file():
        sys.exit(f"{site} has no index.html: run `make docs` first")
    if found := external_resources(site):
        sys.exit("loaded from other hosts:\n" + "\n".join(found))


if __name__ == "__main__":
    main()
