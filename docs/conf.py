"""How the documentation is built: pages in Markdown, reference from the docstrings."""

project = "separata"
author = "The separata authors"
copyright = "The separata authors, Apache-2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
html_theme = "furo"
html_title = "separata"
exclude_patterns = ["_build"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = True
myst_enable_extensions = ["colon_fence"]
# A link to a heading of another page is checked like any other link.
myst_heading_anchors = 3
nitpicky = False
