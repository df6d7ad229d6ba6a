"""Configuration of the documentation site, which `make docs` builds into build/site."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer

import surveyor

project = "surveyor"
author = "the surveyor authors"
copyright = author  # noqa: A001  # the name that Sphinx reads
release = version = surveyor.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
default_role = "code"  # docstrings quote names with single backticks
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 100
napoleon_google_docstring = False

html_theme = "furo"
html_title = f"surveyor {release}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options: dict[str, Any] = {"top_of_page_buttons": []}

SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
LINKED_PAGE = re.compile(r"^- \[[^]]+\]\(([^)]+)\.md\)", re.MULTILINE)
API_BLOCK = re.compile(r"^```api\n(.*?)^```", re.MULTILINE | re.DOTALL)
PARAMETER = re.compile(r"^( *)([a-z_*][\w, *]*) : (.* .* .*)$", re.MULTILINE)
FIELD_COMMENT = re.compile(r"^(    [a-z]\w*: [^#\n]+)  # (?!noqa|type:)", re.MULTILINE)


def expand(_app: Sphinx, page: str, source: list[str]) -> None:
    """Derive the sidebar from the sections of the index, and the API reference from its lists of public names."""
    if page == root_doc:
        source[0] += "".join(
            f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(LINKED_PAGE.findall(body)) + "\n```\n"
            for title, body in SECTION.findall(source[0])
        )
    source[0] = API_BLOCK.sub(lambda block: autodoc(block[1].split()), source[0])


def autodoc(names: list[str]) -> str:
    """Return the autodoc directives of public names, as a MyST block."""
    lines = ["```{eval-rst}"]
    for name in names:
        if isinstance(getattr(surveyor, name), type):
            lines += [f".. autoclass:: surveyor.{name}", "   :members:", ""]
        else:
            lines += [f".. autofunction:: surveyor.{name}", ""]
    return "\n".join([*lines, "```"])


def describe_fields(_app: Sphinx) -> None:
    """Let autodoc take the comment behind a dataclass field as its description."""
    for module in {f"surveyor.{home}" for home in surveyor._HOME.values()}:
        source = ModuleAnalyzer.get_module_source(module)[1] or ""
        analyzer = ModuleAnalyzer.for_string(FIELD_COMMENT.sub(r"\1  #: ", source), module)
        ModuleAnalyzer.cache["module", module] = analyzer


def hide_long_constructor(
    _app: Sphinx, kind: str, _name: str, item: Any, _options: Any, signature: str | None, _returns: str | None
) -> tuple[str, None] | None:
    """Leave out the constructor of results, which users do not call."""
    is_result = kind == "class" and dataclasses.is_dataclass(item) and len(dataclasses.fields(item)) > 5
    return ("", None) if is_result and signature else None


def adapt_docstring(_app: Sphinx, kind: str, _name: str, _item: Any, _options: Any, lines: list[str]) -> None:
    """Adapt a docstring to napoleon: colons in summaries of properties, and parameters described on their own line."""
    if kind in ("attribute", "property"):
        lines.insert(0, "")  # else the words before a colon would be its type
    if "----------" in lines:
        text = "\n".join(lines)
        lines[:] = PARAMETER.sub(r"\1\2\n\1    \3", text).split("\n")


def add_index(app: Sphinx, error: Exception | None) -> None:
    """Serve the first page as index.html too."""
    first = Path(app.outdir) / f"{root_doc}.html"
    if error is None and first.is_file():
        shutil.copyfile(first, first.with_name("index.html"))


def setup(app: Sphinx) -> None:
    """Register the hooks above."""
    app.connect("builder-inited", describe_fields)
    app.connect("source-read", expand)
    app.connect("autodoc-process-signature", hide_long_constructor)
    app.connect("autodoc-process-docstring", adapt_docstring, priority=400)
    app.connect("build-finished", add_index)
