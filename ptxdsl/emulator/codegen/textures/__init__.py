"""Texture and surface instructions: a request of all lanes, and the units that answer it lane by lane."""

from . import requests, surface_unit, texture_unit

__all__ = ["requests", "surface_unit", "texture_unit"]
