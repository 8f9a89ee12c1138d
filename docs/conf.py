"""Sphinx's configuration of the site: `sphinx-build -W -c docs . site`, from the root of the repository."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "ModelGauge"
author = "the ModelGauge contributors"
root_doc = "docs/index"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
    "site_markup",
]
include_patterns = ["docs/**", "*.md", "plugins/*/README.md", "demo_plugins/*/README.md"]
exclude_patterns = ["**/.venv", "docs/*.py", "docs/__pycache__"]

default_role = "code"
smartquotes = False
napoleon_custom_sections = [("Class attributes", "params_style")]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_inherit_docstrings = False
maximum_signature_line_length = 80
add_module_names = False
python_use_unqualified_type_names = True
myst_heading_anchors = 4
myst_links_external_new_tab = False
myst_fence_as_directive: set[str] = set()
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = "ModelGauge"
html_show_sphinx = False
html_copy_source = False
