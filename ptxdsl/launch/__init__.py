"""What a launch takes on either backend: geometry, arguments, arrays, and the cache on disk."""

from __future__ import annotations

from .geometry import (
    DEFAULT_STREAMS, IMAGE_KINDS, LIMITS, Argument, Buffer, FastPath, Handle, ImageArgument, LaunchConfig, Scalar,
    TracksWrites, buffers_of, clustered, stream_handle,
)
from .launched import Launched

__all__ = [
    "DEFAULT_STREAMS", "IMAGE_KINDS", "LIMITS", "Argument", "Buffer", "FastPath", "Handle", "ImageArgument",
    "LaunchConfig", "Launched", "Scalar", "TracksWrites", "buffers_of", "clustered", "stream_handle",
]
