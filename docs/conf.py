"""Sphinx: how the site is made of these pages, of docstrings, of tutorials and of records.

`pip install '.[docs]' && sphinx-build -W docs docs/_build/html` makes it, in some three
minutes on two cores, for tutorials are run.
"""

import sys
from pathlib import Path

import convcore

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

project = "convcore"
author = "The convcore authors"
project_copyright = author
version = release = convcore.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docstrings",  # prepares them for numpydoc
    "api_pages",  # writes docs/api/generated
    "names_page",  # writes docs/pytorch_names.md
    "records",  # writes docs/performance/generated
    "shown_code",  # leaves comments for the formatter out
    "matplotlib.sphinxext.plot_directive",  # draws the explanations' figures
    "mathml",  # formulas without a script from the net
]
exclude_patterns = ["_build", "tutorials"]
suppress_warnings = ["config.cache"]  # the settings of the gallery hold functions

# Docstrings: one entry a name, as the pages of `docs/api` list them.
default_role = "py:obj"
autodoc_typehints = "none"
autosummary_generate = False
numpydoc_show_class_members = False
add_module_names = False

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

# Figures of explanations: drawn from a script when the site is built.
plot_formats = [("png", 160)]
plot_html_show_formats = False
plot_html_show_source_link = False

# Tutorials are run when the site is built; what fails in one fails the build.
sphinx_gallery_conf = {
    "examples_dirs": ["tutorials"],
    "gallery_dirs": ["auto_tutorials"],
    "filename_pattern": r"\.py$",
    "plot_gallery": True,
    "abort_on_example_error": True,
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": None,  # api_pages finds what a tutorial uses, by the names it uses
    "doc_module": ("convcore",),
    "reference_url": {"convcore": None},
    "capture_repr": ("__repr__",),
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 10**9,  # times differ with each build
}

html_theme = "pydata_sphinx_theme"
html_title = "convcore"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"pytorch_names": [], "start/index": []}  # no pages below them
html_context = {"default_mode": "auto"}  # light or dark as the reader's system is
html_theme_options = {
    "navigation_with_keys": False,
    "header_links_before_dropdown": 8,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
