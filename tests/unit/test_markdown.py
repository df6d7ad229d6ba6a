"""Markdown of pages: what a CommonMark parser reads is the text of the page, and nothing of it is markup."""

from __future__ import annotations

from html import escape as html_escape
from typing import Any

import pytest
from attack import attack
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from surveyor.web.markdown import Block, autolink, blocks, escape, link, one_line, to_markdown, to_text

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
#: Text with what is markup in Markdown or HTML, and some other characters.
PIECES = [*"\\`*_[]()<>#+-=.!|~:&;'\"/ \n\tab1é日", "<b>", "&lt;", "](", "```", "1. ", "<!--", "http://b.example/"]
TRICKY = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)
BAD_LINKS = ["javascript:alert(1)", "data:text/html,x", "//evil.example/)[x](javascript:alert(1)", "vbscript:x"]


def keep_http(reference: str) -> str | None:
    return reference if reference.startswith(("http://", "https://")) else None


def tokens_of(markdown: str) -> list[Any]:
    found = []
    for token in PARSER.parse(markdown):
        found += [token, *(token.children or [])]
    return found


def shown(markdown: str) -> str:
    """Return the text that a reader of the rendered Markdown sees."""
    kinds = ("text", "code_block", "fence", "code_inline", "text_special")
    breaks = ("softbreak", "hardbreak", "paragraph_close", "heading_close", "list_item_close")
    return "".join(
        token.content if token.type in kinds else " " if token.type in breaks else "" for token in tokens_of(markdown)
    )


def plain(text: str) -> str:
    return " ".join(text.split())


@attack("text that is Markdown or HTML", area="output", must_hold="exported Markdown shows it as text")
@given(TRICKY)
def test_text_is_shown_as_it_is_and_is_no_markup(text: str) -> None:
    reduced = f"<p>{html_escape(text)}</p>"
    found = blocks(reduced, keep_http)
    markdown = to_markdown(found)
    kinds = {token.type for token in tokens_of(markdown)}
    assert kinds <= {"paragraph_open", "inline", "paragraph_close", "text", "text_special"}
    assert plain(shown(markdown)) == plain(to_text(found)) == plain(text)


@given(TRICKY, TRICKY)
def test_links_keep_their_text_and_lead_to_http_only(text: str, href: str) -> None:
    for target in (f"https://a.example/{href}", href, *BAD_LINKS):
        reduced = f'<p>x <a href="{html_escape(target)}">{html_escape(text)}</a> y</p>'
        markdown = to_markdown(blocks(reduced, keep_http))
        found = [token for token in tokens_of(markdown) if token.type == "link_open"]
        assert all(str(token.attrs["href"]).startswith(("http://", "https://")) for token in found)
        assert not {token.type for token in tokens_of(markdown)} & {"html_inline", "html_block", "image"}
        if found:
            assert plain(shown(markdown)) == plain(f"x {text} y")


@given(TRICKY)
def test_code_ends_only_where_it_ends(text: str) -> None:
    code = text + "\n```\n````\n# heading\n</pre><script>"
    markdown = to_markdown(blocks(f"<pre>{html_escape(code)}</pre><p>after</p>", keep_http))
    fences = [token for token in tokens_of(markdown) if token.type == "fence"]
    assert [token.content.strip("\n") for token in fences] == [code.strip("\n")]
    assert shown(markdown).endswith("after ")


def test_headings_are_lowered_and_never_above_their_level() -> None:
    found = blocks("<h1>One</h1><h6>Six</h6><p># not one</p><p>Also none<br>===</p>", keep_http)
    levels = [token.tag for token in tokens_of(to_markdown(found, demote=1)) if token.type == "heading_open"]
    assert levels == ["h2", "h6"]


def test_lists_nest() -> None:
    reduced = "<ul><li>one<ul><li>inner <pre>x\n y</pre></li></ul></li><li><p>two</p><p>more</p></li></ul>"
    reduced += "<ol><li>a</li><li>b</li></ol><p>end</p>"
    markdown = to_markdown(blocks(reduced, keep_http))
    kinds = [token.type for token in PARSER.parse(markdown) if token.type.endswith("_open")]
    assert kinds.count("bullet_list_open") == 2
    assert kinds.count("ordered_list_open") == 1
    assert kinds.count("list_item_open") == 5
    assert plain(shown(markdown)) == "one inner x y two more a b end"
    assert "1. a\n2. b" in markdown


@pytest.mark.parametrize("depth", [3, 50, 5_000])
def test_deep_lists_are_flattened(depth: int) -> None:
    reduced = "<ul><li>a" * depth + "</li></ul>" * depth
    markdown = to_markdown(blocks(reduced, keep_http))
    assert markdown.count("- a") == depth
    assert max(len(line) for line in markdown.split("\n")) < 20


def test_permalinks_are_dropped_and_other_short_links_kept() -> None:
    reduced = '<h2><a href="#x">#</a> Title <a href="#x">¶</a></h2><p>Press <a href="https://a.example/">§ 5</a></p>'
    assert to_markdown(blocks(reduced, keep_http)) == "## Title\n\nPress [§ 5](https://a.example/)"


def test_rows_of_tables_are_items() -> None:
    found = blocks("name\t\tvalue\na|b\t\t1\n", keep_http)
    assert to_markdown(found) == "- name | value\n- a\\|b | 1"
    assert to_text(found) == "name\tvalue\na|b\t1"


def test_invisible_characters_are_removed() -> None:
    hidden = "a\u202eb\u2066c\0d\x1be\ufefff\u200b"
    assert to_text(blocks(f"<p>{hidden}</p>", keep_http)) == "abcdef\u200b"
    assert one_line(f"x\n{hidden}\ty") == "x abcdef\u200b y"
    assert len(one_line("word " * 200)) <= 300


@given(st.text())
def test_any_reduced_html_can_be_read(text: str) -> None:
    for reduced in (text, f"<li>{text}</ol></li></p><pre>{text}", f"</ul></a><a href='{text}'><li>{text}"):
        found = blocks(reduced, keep_http)
        to_markdown(found)
        to_text(found)


def test_urls_cannot_end_a_link() -> None:
    url = "https://a.example/a)(b <c> [d] `e`"
    assert link("x", url) == "[x](https://a.example/a%29%28b%20%3Cc%3E%20%5Bd%5D%20%60e%60)"
    assert [token.type for token in tokens_of(autolink(url))].count("link_open") == 1


def test_words_with_underscores_stay_readable() -> None:
    assert escape("snake_case __init__ 2*3 a<b") == "snake_case \\_\\_init\\_\\_ 2\\*3 a\\<b"
    assert escape("x < 3, y <= 4") == "x < 3, y <= 4"
    assert Block("text", (("a", ""), ("b", "https://a.example/"))).text == "ab"


def test_a_table_row_does_not_begin_with_a_heading() -> None:
    for cell in ("# Another page", "> quoted", "1. one", "---"):
        markdown = to_markdown(blocks(f"{cell}\tb", keep_http))
        kinds = {token.type for token in tokens_of(markdown)}
        assert kinds.isdisjoint({"heading_open", "blockquote_open", "ordered_list_open", "hr"})
        assert plain(shown(markdown)) == f"{cell} | b"
