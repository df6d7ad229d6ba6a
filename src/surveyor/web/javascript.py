"""Detect pages that are empty until a script has run, from their HTML alone.

Such a page has little visible text, few links, no other content (forms, images, frames), a script, and one of three
signs that the script renders the page:

- an application root, such as `<div id="root">` or `<app-root>`, with at most a text like "Loading …" in it;
- a `noscript` element that mentions JavaScript;
- a body with nothing visible at all, and a script from a file.

Not detected: pages whose HTML has some text or links and loads the rest by a script.
"""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

NEEDS_JAVASCRIPT = "needs JavaScript"  # the reason recorded for the visit of such a page
FEW_LINKS, LITTLE_TEXT = 2, 200  # maximum links and characters
MORE_LINKS, MORE_TEXT = 10, 300  # around an empty application root: navigation, a cookie banner
LOADING = 40  # maximum bytes of placeholder text
FEW_ELEMENTS = 500  # maximum elements
FEW_ROOTS = 4  # checked: more could be nested, each read with its descendants
FEW_IMAGES = 2  # a logo and a loading indicator

_ROOTS = (
    "#root, #app, #__next, #__nuxt, #__layout, #___gatsby, #svelte, #q-app, #react-root, #app-root, #application, "
    "#main-app, #app-mount, #app-container, #ember-app, #mount, "
    "app-root, [ng-app], [data-ng-app], [ng-version], [data-reactroot], [data-v-app]"
)
_DATA = frozenset(
    {"application/json", "application/ld+json", "text/template", "text/html", "speculationrules", "importmap"}
)
_CONTENT = "input, textarea, select, video, audio, object, embed, iframe, frame"
_NO_CONTENT = frozenset({"hidden", "checkbox", "radio"})  # input types that cookie banners have
_NOT_SHOWN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


def needs_javascript(tree: LexborHTMLParser, text: str, links: int) -> bool:
    """Return whether a page with this visible text and number of links is rendered by a script."""
    if links > MORE_LINKS or len(text) > MORE_TEXT:
        return False
    scripts = [node for node in tree.css("script") if (node.attributes.get("type") or "").lower() not in _DATA]
    if not scripts or any(_is_shown(node) for node in tree.css(_CONTENT)):
        return False
    images = sum(_is_shown(node) for node in tree.css("img, picture"))
    if images <= FEW_IMAGES and any(_is_unfilled(root) for root in tree.css(_ROOTS)[:FEW_ROOTS]):
        return True
    if links > FEW_LINKS or len(text) > LITTLE_TEXT or len(tree.css("body *")) > FEW_ELEMENTS:
        return False
    asks = any("javascript" in node.text().lower() for node in tree.css("noscript"))
    if asks and images <= FEW_IMAGES and len(text.encode()) <= LOADING:
        return True
    return (
        tree.css_first("svg, canvas") is None
        and not text
        and not links
        and not images
        and any("src" in node.attributes for node in scripts)
    )


def _is_unfilled(root: LexborNode) -> bool:
    """Return whether an application root is empty: no links, and no more text than a placeholder."""
    if root.css_first("a[href]") is not None:
        return False
    hidden = sum(len(node.text().strip().encode()) for node in root.css("script, style, noscript, template"))
    return len(root.text().strip().encode()) - hidden <= LOADING


def _is_shown(node: LexborNode) -> bool:
    """Return whether a node is visible: not a hidden input, not styled hidden, not in a noscript or template."""
    if node.tag == "input" and (node.attributes.get("type") or "").lower() in _NO_CONTENT:
        return False
    if _NOT_SHOWN.search(node.attributes.get("style") or ""):
        return False
    above = node.parent
    while above is not None:
        if above.tag in ("noscript", "template"):
            return False
        above = above.parent
    return True
