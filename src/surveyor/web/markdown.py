r"""Blocks of text as Markdown that cannot contain markup of the page they came from.

`blocks` reads the reduced HTML of Resiliparse (headings, paragraphs, lists, code and links, without attributes other
than `href`). `to_markdown` writes CommonMark: every character that could start markup is escaped, code is fenced by
more backticks than it contains, and only http(s) links are kept. So no page can insert HTML, images, scripts or a
heading above its own level.

    >>> to_markdown(blocks("<h1>a * b</h1><p>See <a href='x'>this</a> &lt;script&gt;</p>", lambda reference: None))
    '# a \\* b\n\nSee this \\<script>'

Control characters and marks that change the direction of text are removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import unescape
from typing import Literal

Kind = Literal["heading", "text", "item", "code", "row"]
Resolve = Callable[[str], str | None]  # a reference on the page -> an absolute http(s) URL, or None

DEEPEST = 6  # levels of headings and of lists
LONGEST_TITLE = 300  # characters
_TAG = re.compile(r"""<(/?)(h[1-6]|p|ul|ol|li|pre|br|a)(?:\s+href=("[^"]*"|'[^']*'))?\s*/?>""")
_INVISIBLE = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_SPACES, _BLANKS = re.compile(r"\s+"), re.compile(r"[^\S\t]+")
_PERMALINK = re.compile(r"[\s¶#§🔗\ufe0f]*|\[link\]|permalink|link to this (?:heading|definition)", re.IGNORECASE)
_SPECIAL = re.compile(r"""[\\`*\[]|<(?=[a-zA-Z/!?])|(?<![^\W_])_|_(?![^\W_])|~(?=~)|&(?=#?\w{1,40};)""")
_LINE_START = re.compile(r"(\d{1,9})(?=[.)](?:\s|$))|[#>=|:+~-]")
_UNSAFE = re.compile(r"""[\s<>()\[\]\\"'`{}|^\x00-\x20\x7f]""")


@dataclass(frozen=True, slots=True)
class Block:
    """One heading, paragraph, list item, code block or table row."""

    kind: Kind
    spans: tuple[tuple[str, str], ...]  # text and URL, which is empty outside of links
    level: int = 0  # of a heading; lists that the block is in
    number: int = 0  # of an item in a numbered list
    first: bool = False  # the block begins an item

    @property
    def text(self) -> str:
        """The text without markup."""
        return "".join(text for text, _ in self.spans)


@dataclass(slots=True)
class _Reader:
    """State while reading reduced HTML."""

    resolve: Resolve
    found: list[Block] = field(default_factory=list)
    spans: list[tuple[str, str]] = field(default_factory=list)
    lists: list[int] = field(default_factory=list)  # next number, or 0 where items have none
    heading: int = 0
    code: bool = False
    paragraph: bool = False
    begins: bool = False  # the next block is the first one of an item
    link: str = ""
    anchor: bool = False  # inside of an `a`
    start: int = 0  # of it, in `spans`

    def flush(self) -> None:
        """End the block."""
        spans, self.spans, self.start = _trimmed(self.spans, code=self.code), [], 0
        if not spans:
            return
        depth, number = min(len(self.lists), DEEPEST), 0
        if self.code:
            kind: Kind = "code"
        elif self.heading:
            kind, depth = "heading", self.heading
        elif any("\t" in text for text, _ in spans) and not self.lists and not self.paragraph:
            kind = "row"
        else:
            kind = "item" if self.begins else "text"
        if self.begins and kind != "heading":
            number = self.lists[-1] if self.lists else 0
        self.found.append(Block(kind, spans, depth, number, first=self.begins and kind != "heading"))
        if self.begins and self.lists and self.lists[-1]:
            self.lists[-1] += 1
        self.begins = False

    def text(self, source: str) -> None:
        """Add text between tags; a line end outside of paragraphs and items ends a block."""
        text = _INVISIBLE.sub("", unescape(source).replace("\r\n", "\n").replace("\r", "\n"))
        if self.code:
            self.spans.append((text, ""))
            return
        if self.paragraph or self.heading or self.lists:
            self.spans.append((_SPACES.sub(" ", text), self.link))
            return
        first, *others = text.split("\n")
        self.spans.append((_BLANKS.sub(" ", first), self.link))
        for line in others:
            self.flush()
            self.spans.append((_BLANKS.sub(" ", line), self.link))

    def tag(self, name: str, href: str, *, closing: bool) -> None:
        """Handle a tag."""
        if name == "a":
            self._anchor(href, closing=closing)
            return
        if name == "br":
            self.text("\n")
            return
        if self.code and name != "pre":
            return
        self.flush()
        self.paragraph = name == "p" and not closing
        self.heading = int(name[1]) if name[0] == "h" and not closing else 0
        self.code = name == "pre" and not closing
        if name in ("ul", "ol"):
            if not closing:
                self.lists.append(int(name == "ol"))
            elif self.lists:
                self.lists.pop()
            self.begins = False
        elif name == "li":
            self.begins = not closing

    def _anchor(self, href: str, *, closing: bool) -> None:
        if closing:
            label = "".join(text for text, _ in self.spans[self.start :])
            if self.anchor and not self.code and _PERMALINK.fullmatch(label):
                del self.spans[self.start :]
            self.link, self.start, self.anchor = "", 0, False
            return
        reference = unescape(href).strip()
        is_link = bool(reference) and not self.code and not reference.startswith("#")  # `<a name>` is not
        self.link = (self.resolve(reference) or "") if is_link else ""
        self.start, self.anchor = len(self.spans), True


def blocks(reduced: str, resolve: Resolve) -> list[Block]:
    """Return the blocks of reduced HTML."""
    reader = _Reader(resolve)
    parts = _TAG.split(reduced)
    reader.text(parts[0])
    tags = [*zip(*(parts[at::4] for at in (1, 2, 3, 4)), strict=True)]
    anchors = [slash for slash, name, *_ in tags if name == "a"]
    is_closed = iter([bool(slash) for slash in anchors[1:]] + [False])  # whether the end of an anchor comes next
    for slash, name, href, text in tags:
        if name != "a" or next(is_closed) or slash:  # Resiliparse does not close anchors without content
            reader.tag(name, (href or "")[1:-1], closing=bool(slash))
        if text:
            reader.text(text)
    reader.flush()
    return reader.found


def _trimmed(spans: list[tuple[str, str]], *, code: bool) -> tuple[tuple[str, str], ...]:
    """Join spans of the same link, without white space at the ends; empty if there is no text."""
    joined: list[list[str]] = []
    for text, link in spans:
        if not code and joined and joined[-1][0].endswith(" "):
            text = text.lstrip(" ")
        if joined and joined[-1][1] == link:
            joined[-1][0] += text
        elif text:
            joined.append([text, link])
    if not any(text.strip() for text, _ in joined):
        return ()
    if code:
        return (("".join(text for text, _ in joined).strip("\n"), ""),)
    joined[0][0] = joined[0][0].lstrip()
    joined[-1][0] = joined[-1][0].rstrip()
    return tuple((text, link) for text, link in joined if text)


def to_text(found: Iterable[Block]) -> str:
    """Return the blocks as plain text: a blank line between blocks, none between items and between rows."""
    lines: list[str] = []
    last: Block | None = None
    for block in found:
        lines += _gap(last, block)
        lines.append(re.sub(r"\t+", "\t", block.text) if block.kind == "row" else block.text)
        last = block
    return "\n".join(lines)


def to_markdown(found: Iterable[Block], *, demote: int = 0) -> str:
    """Return the blocks as CommonMark; `demote` lowers headings by so many levels."""
    lines: list[str] = []
    last: Block | None = None
    indents: list[int] = []  # width of the marker of each list around the block
    for block in found:
        lines += _gap(last, block)
        depth = 0 if block.kind == "heading" else block.level
        del indents[depth:]
        indents += [2] * (depth - len(indents))
        mark = ""
        if block.first and depth:
            mark = f"{block.number}. " if block.number else "- "
            indents[-1] = len(mark)
        before = " " * (sum(indents) - len(mark)) + mark
        body = _rendered(block, demote).split("\n")
        lines.append(before + body[0])
        lines += [" " * sum(indents) + line if line else "" for line in body[1:]]
        last = block
    return "\n".join(lines)


def _gap(last: Block | None, block: Block) -> list[str]:
    """Return the blank line before a block, if there is one."""
    tight = last is not None and (last.kind, block.kind) in (("item", "item"), ("row", "row"))
    return [] if last is None or tight else [""]


def _rendered(block: Block, demote: int) -> str:
    if block.kind == "code":
        longest = max(map(len, re.findall(r"`+", block.text)), default=0)
        fence = "`" * max(3, longest + 1)
        return f"{fence}\n{block.text}\n{fence}"
    if block.kind == "heading":
        return "#" * min(block.level + demote, DEEPEST) + " " + _inline(block).strip()
    if block.kind == "row":
        cells = [escape(cell.strip()).replace("|", "\\|") for cell in re.split(r"\t+", block.text)]
        return "- " + _at_line_start(" | ".join(cells))
    return _at_line_start(_inline(block))


def _inline(block: Block) -> str:
    return "".join(link(text, url) if url else escape(text) for text, url in block.spans)


def link(text: str, url: str) -> str:
    """Return a link, with the white space of its text outside."""
    label = text.strip()
    if not label:
        return text
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    shown = escape(label).replace("]", "\\]")
    return f"{before}[{shown}]({_UNSAFE.sub(lambda found: _percent(found[0]), url)}){after}"


def autolink(url: str) -> str:
    """Return a URL as a link that shows itself."""
    return f"<{_UNSAFE.sub(lambda found: _percent(found[0]), url)}>"


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "replace"))


def escape(text: str) -> str:
    r"""Return text so that Markdown shows it as it is, within a line.

    >>> escape("snake_case _x_ <b> &lt; [a](b)")
    'snake_case \\_x\\_ \\<b> \\&lt; \\[a](b)'
    """
    return _SPECIAL.sub(lambda found: "\\" + found[0], text)


def _at_line_start(line: str) -> str:
    """Escape what would be a heading, quotation, list, rule or table at the start of a line."""
    found = _LINE_START.match(line)
    if not found:
        return line
    return f"{found[0]}\\{line[found.end() :]}" if found[1] else f"\\{line}"


def one_line(text: str, longest: int = LONGEST_TITLE) -> str:
    """Return text on one line, without invisible characters, and shortened at a word."""
    plain = " ".join(_INVISIBLE.sub("", text).split())
    if len(plain) <= longest:
        return plain
    cut = plain[: longest - 1]
    return (cut.rpartition(" ")[0] or cut) + "…"
