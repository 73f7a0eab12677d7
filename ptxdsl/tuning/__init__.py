"""Autotuning: which of several configurations of a kernel is the fastest for these arguments."""

from __future__ import annotations

from .autotuner import Autotuned, TunedLaunch, autotune
from .config import Config
from .results import Trial, Tuning

__all__ = ["Autotuned", "Config", "Trial", "TunedLaunch", "Tuning", "autotune"]
