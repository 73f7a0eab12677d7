"""What a launch takes on either backend: geometry, arguments, arrays, and the cache on disk."""

from __future__ import annotations

from .geometry import Argument, Buffer, Handle, LaunchConfig, Scalar, TracksWrites, clustered, stream_handle

__all__ = ["Argument", "Buffer", "Handle", "LaunchConfig", "Scalar", "TracksWrites", "clustered", "stream_handle"]
