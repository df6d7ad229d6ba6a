"""One page as topics and properties see it: its address, and what was read there, parsed when first asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from surveyor.web.urls import domain, host


@dataclass(frozen=True)
class Said:
    """What a page says: its title, language, visible text and links."""

    title: str = ""
    language: str = ""
    text: str = ""
    links: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class SampledPage:
    """A page that a walk has met; a page of a graph without text has its name only."""

    url: str
    out_degree: int = 0  # links to other pages, each once
    read: Callable[[], Said] = field(default=Said, repr=False)

    @cached_property
    def said(self) -> Said:
        """What it says."""
        return self.read()

    @property
    def title(self) -> str:
        """Its title."""
        return self.said.title

    @property
    def language(self) -> str:
        """The language that it says it is in, such as `de`."""
        return self.said.language

    @property
    def text(self) -> str:
        """Its visible text."""
        return self.said.text

    @property
    def links(self) -> tuple[str, ...]:
        """The URLs that it links to."""
        return self.said.links

    @property
    def host(self) -> str:
        """The host of its URL; empty for a name that is no URL."""
        return host(self.url) if "://" in self.url else ""

    @property
    def domain(self) -> str:
        """The registrable domain of its URL; empty for a name that is no URL."""
        return domain(self.host) if self.host else ""
