"""Where the packages are; all else stands in pyproject.toml.

With one folder for all of them an editable install is a path, which type checkers and editors follow; otherwise it is
an import hook, which they do not. A checkout without symbolic links (git on Windows) has `kernels/` only.
"""

from pathlib import Path

from setuptools import setup

linked = Path(__file__).with_name("ptxdsl").joinpath("kernels").is_dir()
setup(package_dir={"": "."} if linked else {"ptxdsl": "ptxdsl", "ptxdsl.kernels": "kernels"})
