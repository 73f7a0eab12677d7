"""What ``python -m ptxdsl check`` does: files of kernels traced, verified, assembled and run under the sanitizer.

Editors, CI and programs that write kernels read the answer as JSON or SARIF 2.1.0 (OASIS); each diagnostic has the
stable code of its error, which docs/errors.md explains.
"""

from __future__ import annotations

from .diagnostics import Diagnostic
from .files import CheckedFile, check_file

__all__ = ["CheckedFile", "Diagnostic", "check_file"]
