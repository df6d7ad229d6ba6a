"""The main text of pages: regions, lists of links, charsets, languages, and bodies that are not text."""

from __future__ import annotations

import pytest
from attack import attack

pytest.importorskip("resiliparse")

from surveyor.web.page_text import PageText, language_of, read_text

URL = "https://docs.example.org/guide/page.html"
HTML = {"content-type": "text/html; charset=utf-8"}
PROSE = "The river rises in the mountains and reaches the sea after four hundred miles of forest and farmland. "
SENTENCES = {
    "de": "Der Fluss entspringt in den Bergen und erreicht nach vierhundert Meilen durch Wald und Felder das Meer. ",
    "fr": "Le fleuve prend sa source dans les montagnes et rejoint la mer après quatre cents lieues de forêts. ",
    "es": "El río nace en las montañas y llega al mar después de cuatrocientas millas de bosques y campos. ",
    "ja": "その川は山々に源を発し、森や畑のあいだを四百マイルほど流れたあと、海にそそぎます。",
    "ru": "Река берёт начало в горах и впадает в море, пройдя четыреста миль лесов и полей. ",
}


def read(html: str | bytes, headers: dict[str, str] = HTML, declared: str = "") -> PageText:
    body = html if isinstance(html, bytes) else html.encode()
    found = read_text(body, URL, headers, declared)
    assert found is not None
    return found


def menu(count: int = 30) -> str:
    return "<div><ul>" + "".join(f'<li><a href="/m{n}">Menu {n}</a></li>' for n in range(count)) + "</ul></div>"


@pytest.mark.parametrize("region", ["<main>{}</main>", '<div role="main">{}</div>'])
def test_a_declared_main_region_is_all_that_is_read(region: str) -> None:
    inside = f"<h1>Rivers</h1><p>{PROSE * 3}</p><ul><li><a href='../a.html'>All rivers</a></li></ul>"
    html = f"<body>{menu()}<p>{PROSE} outside</p>{region.format(inside)}<p>Also outside</p></body>"
    found = read(html)
    assert found.text == f"Rivers\n\n{(PROSE * 3).strip()}\n\nAll rivers"
    assert found.markdown.endswith("- [All rivers](https://docs.example.org/a.html)")
    assert (found.language, found.cut) == ("en", False)


def test_two_main_regions_are_no_declaration() -> None:
    html = f"<body><main><p>{PROSE * 4}</p></main><main><p>{PROSE[::-1] * 4}</p></main></body>"
    assert PROSE.strip() in read(html).text
    assert PROSE[::-1].strip() in read(html).text


def test_without_a_region_boilerplate_is_removed() -> None:
    html = f"<body><nav>{menu()}</nav><div><h1>Rivers</h1><p>{PROSE * 4}</p></div><footer>© Imprint</footer></body>"
    found = read(html)
    assert PROSE.strip() in found.text
    assert "Menu 7" not in found.text
    assert "Imprint" not in found.text


def test_a_page_of_links_keeps_them() -> None:
    html = f"<body><nav><a href=/home>Home</a></nav><h1>Contents</h1>{menu(80)}</body>"
    found = read(html)
    assert "Menu 79" in found.text
    assert "Home" not in found.text


def test_the_base_of_links_is_that_of_the_page() -> None:
    html = f'<head><base href="https://b.example/x/"></head><body><main><p>{PROSE} <a href="y">y</a></p></main></body>'
    assert "[y](https://b.example/x/y)" in read(html).markdown


@pytest.mark.parametrize(("charset", "language"), [("koi8-r", "ru"), ("shift_jis", "ja"), ("iso-8859-1", "fr")])
def test_charsets(charset: str, language: str) -> None:
    html = f"<body><main><p>{SENTENCES[language] * 4}</p></main></body>".encode(charset)
    found = read(html, {"content-type": f"text/html; charset={charset}"})
    assert SENTENCES[language].strip() in found.text
    assert found.language == language


def test_a_wrong_charset_is_no_error() -> None:
    html = f"<body><main><p>{SENTENCES['fr'] * 4}</p></main></body>".encode("latin-1")
    assert "Le fleuve prend sa source" in read(html).text


@pytest.mark.parametrize("language", SENTENCES)
def test_the_language_is_detected_although_another_is_declared(language: str) -> None:
    assert language_of(SENTENCES[language] * 4, "en") == language
    assert language_of(SENTENCES[language] * 4) == language


def test_the_declared_language_counts_for_short_texts_and_code() -> None:
    assert language_of("Index", "de-AT") == "de"
    assert language_of("", "") == ""
    api = "bisect_left(a, x, lo=0, hi=len(a), *, key=None) Locate the insertion point for x in a to maintain order. "
    assert language_of(api * 5, "en") == "en"
    assert language_of("x", "not a language") in ("", language_of("x"))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"%PDF-1.4 binary", "text/html"),
        (bytes(range(256)) * 50, "text/html"),
        (b"\x89PNG\r\n\x1a\n\0\0\0" * 20, ""),
        (b"{}", "application/json"),
        (b"GIF89a", "image/gif"),
    ],
)
def test_what_is_not_text_has_none(body: bytes, kind: str) -> None:
    assert read_text(body, URL, {"content-type": kind}) is None


def test_plain_text_keeps_its_paragraphs() -> None:
    found = read(f"# No heading\nof it\n\n{PROSE}\n\n\n<b>tag</b>", {"content-type": "text/plain"})
    assert found.text == f"# No heading of it\n\n{PROSE.strip()}\n\n<b>tag</b>"
    assert found.markdown.startswith("\\# No heading of it\n")
    assert "\\<b>tag\\</b>" in found.markdown


@pytest.mark.parametrize("body", [b"", b"   ", b"<p>", b"<main></main>", b"<script>alert(1)</script>"])
def test_pages_without_text(body: bytes) -> None:
    assert read(body).text == ""


@attack("scripts and event handlers in pages", area="output", must_hold="no text of the page holds them as markup")
@pytest.mark.parametrize(
    "html",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        '<a href="javascript:alert(1)">x</a>',
        '<a href="https://a.example/&quot;onclick=alert(1)">x</a>',
        "<svg><script>alert(1)</script></svg>",
        "<textarea></textarea><script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "<p>```</p><pre>```\n&lt;script&gt;</pre>",
    ],
)
def test_no_markup_of_the_page_survives(html: str) -> None:
    from markdown_it import MarkdownIt

    found = read(f"<body><main><p>{PROSE}</p>{html}<p>{PROSE}</p></main></body>")
    rendered = MarkdownIt("commonmark").render(found.markdown)
    assert "<script" not in rendered
    assert "<img" not in rendered
    assert 'href="javascript' not in rendered
    assert "onclick=alert(1)" not in rendered.replace("%22onclick=alert(1)", "").replace("&quot;onclick", "")


def test_long_pages_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    from surveyor.web import page_text

    monkeypatch.setattr(page_text, "MOST_TEXT", 500)
    found = read(f"<body><main><p>{PROSE * 40}</p></main></body>")
    assert found.cut
    assert len(found.text) <= 500
    plain = read(PROSE * 40, {"content-type": "text/plain"})
    assert plain.cut
    assert len(plain.text) <= 500


def test_anchors_that_only_name_a_place_are_not_links() -> None:
    title = b"<h1><a name=top></a>Title of the page</h1>"
    found = read_text(
        title + b"<p><a name=x>A named paragraph.</a> <a href=b>B</a></p>",
        "https://a.example/",
        {"content-type": "text/html"},
    )
    assert found is not None
    assert found.markdown == "# Title of the page\n\nA named paragraph. [B](https://a.example/b)"


def test_figures_keep_their_code_tables_and_captions() -> None:
    listing = "<figure class=listing><pre><code>let pool = 4;</code></pre><figcaption>Listing 7</figcaption></figure>"
    table = "<FIGURE><table><tr><td>depth</td><td>12 m</td></tr></table></FIGURE>"
    for region in ("<main>{}</main>", "<div>{}</div>"):
        found = read(region.format(f"<p>{PROSE * 3}</p>{listing}<p>{PROSE}</p>{table}<p>{PROSE}</p>"))
        assert "```\nlet pool = 4;\n```" in found.markdown
        assert "Listing 7" in found.text
        assert "depth\t12 m" in found.text


def test_the_version_of_a_function_is_not_left_out_as_the_date_of_an_article() -> None:
    body = f"<h2>open()</h2><div class=api_metadata><span>Added in: v1.2</span></div><p>{PROSE * 4}</p>"
    assert "Added in: v1.2" in read(f"<body><div><div><section>{body}</section></div></div></body>").text


def test_addresses_with_apostrophes_and_links_without_content() -> None:
    body = (
        "<p><a href=\"/run?code=don't&quot;\">Run</a> and <a href='/icon'></a>wait.</p><a href=/empty></a><p>Last.</p>"
    )
    found = read(f"<main>{body}</main>")
    assert found.text == "Run and wait.\n\nLast."
    assert found.markdown == "[Run](https://docs.example.org/run?code=don%27t%22) and wait.\n\nLast."
