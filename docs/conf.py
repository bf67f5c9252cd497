"""The documentation site: `make docs` builds it into build/site, without a network."""

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
