"""The documentation site: `make docs` builds it into build/site, without a network."""

import re
from typing import Any

from lff import __version__

project = "lff"
author = "The lff developers"
release = __version__
extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["*.py"]
html_theme = "furo"
html_title = f"lff {release}"
html_copy_source = html_show_sourcelink = html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "friendly", "monokai"


def _files_beside(app: Any, page: str, source: list[str]) -> None:
    """A Markdown file of the repository that is no page of the site is a download there; as it is written, it would be a page."""
    source[0] = re.sub(r"\]\((\.\./[^)#]+\.md)\)", r"](path:\1)", source[0])


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("source-read", _files_beside)
