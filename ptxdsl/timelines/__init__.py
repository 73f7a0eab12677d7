"""Timelines of launches: which warp ran, waited, copied and multiplied when, who waited for whom.

The emulator says what happened in which order (:mod:`.recording`), a small model of a multiprocessor how long it takes
(:mod:`.model`, with the figures of :mod:`.costs`); the rest draws it.
"""
