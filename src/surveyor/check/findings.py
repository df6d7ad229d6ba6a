"""A finding of an audit: one fault, where it is, and what it weighs."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

from surveyor.check.rules import RULES, SEVERITIES, Severity
from surveyor.web.link_context import NO_CONTEXT, LinkContext

MOST_SOURCES = 20  # listed with a finding, the most important ones
IN_TEMPLATE = 10  # pages that link in the same way, outside of the main content or with the same text


@dataclass(frozen=True, slots=True)
class Source:
    """A page that a fault is on: for a link, the page that has it."""

    url: str
    share: float = 0.0  # of importance
    line: int = 0  # of the archived body; 0 if unknown
    text: str = ""
    element: str = ""
    position: str = ""
    rel: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault."""

    rule: str
    url: str  # of the page, or the target of the links
    message: str
    weight: float  # importance of the pages that the fault is on, at most 1
    sources: tuple[Source, ...] = ()  # the most important ones
    pages: int = 1  # number of pages that the fault is on
    template: str = ""  # position, if it seems to be in a template
    switched: Severity | None = None  # severity, if the settings change that of the rule
    subject: str = ""  # what the fault is about, if that is not `url`, which for a group of pages follows the ranking

    @property
    def severity(self) -> Severity:
        """The severity of the rule."""
        return self.switched or RULES[self.rule].severity

    @property
    def fingerprint(self) -> str:
        """Identify the fault in another audit of the same site: by rule and subject, whatever the ranking."""
        about = f"{self.rule}\n{self.subject or self.url}".encode("utf-8", "replace")
        return hashlib.sha256(about).hexdigest()[:32]

    @property
    def order(self) -> tuple[int, float, str, str]:
        """Sort key: most severe first, then by weight."""
        return SEVERITIES.index(self.severity), -self.weight, self.rule, self.url

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        fields = asdict(self) | {"sources": [asdict(source) for source in self.sources]}
        del fields["switched"], fields["subject"]
        return {"fingerprint": self.fingerprint, "severity": self.severity, **fields}


def source_of(url: str, share: float, context: LinkContext = NO_CONTEXT) -> Source:
    """Return a page as the source of a link."""
    return Source(url, share, 0, context.text, context.element, context.position, context.rel)


def template_of(sources: list[Source]) -> str:
    """Return the position of a link that at least ten pages have in the same way, which looks like a template."""
    counts: dict[tuple[str, str], int] = {}
    for source in sources:
        if source.element:
            key = source.text, source.position
            counts[key] = counts.get(key, 0) + 1
    if not counts:
        return ""
    (_, position), most = max(counts.items(), key=lambda entry: entry[1])
    return position if most >= IN_TEMPLATE and 2 * most >= len(sources) else ""
