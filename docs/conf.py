"""The documentation site: `python -m sphinx -W -c docs . site` from the root of the repository.

The pages are those that one reads in the repository, so that links are checked once; the source folder is its root. The
tutorial's pages are notebooks in Markdown (MyST-NB), which the build executes on the emulator: what they print and draw
is made then. The pages of the API are made of the public names (`api_pages.py`).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
os.environ["PTXDSL_BACKEND"] = "emulator"
os.environ["PYTHONPATH"] = str(ROOT)  # of the notebooks' kernels

import jupytext  # noqa: E402

import api_pages  # noqa: E402
import ptxdsl  # noqa: E402

project, author, copyright = "ptxdsl", "the ptxdsl authors", "the ptxdsl authors"  # noqa: A001
version = release = ptxdsl.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = [
    "docs/**", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "ptxdsl/isa/README.md",
]
exclude_patterns = ["docs/**.py", "**/__pycache__"]

html_theme = "furo"
html_title = f"ptxdsl {version}"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]

nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_show_tb = True

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_mock_imports = ["torch", "jax", "cuda", "distributed", "dask"]
default_role = "code"
napoleon_google_docstring, napoleon_numpy_docstring = True, False
napoleon_preprocess_types = False
suppress_warnings = ["misc.highlighting_failure"]


def _finish(app: Any, error: Exception | None) -> None:
    """The site's first page, and the tutorial as notebooks to take along."""
    if error is not None or app.builder.name != "html":
        return
    page = '<meta http-equiv="refresh" content="0; url=docs/index.html"><a href="docs/index.html">ptxdsl</a>\n'
    (Path(app.outdir) / "index.html").write_text(page, "utf-8")
    folder = Path(app.outdir) / "notebooks"
    folder.mkdir(exist_ok=True)
    for path in (ROOT / "docs" / "tutorial").glob("[0-9]*.md"):
        jupytext.write(jupytext.read(path, fmt="md:myst"), folder / f"{path.stem}.ipynb")


def setup(app: Any) -> None:
    """Make what is derived before the pages are read."""
    api_pages.write(ROOT / "docs" / "api")
    app.connect("build-finished", _finish)
