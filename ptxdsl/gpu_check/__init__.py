"""A check of a GPU: every launch that tests make on the emulator, repeated there, with each byte of memory compared.

Launches are recorded while the tests run (``recording``), those of single instructions made by ``form_kernels``. They
are run once more on the emulator, in several schedules, to know which bytes PTX defines, and assembled (``preparing``).
What is left to do needs Python and the driver only: the package ``bare``, which is copied beside the recorded launches.
"""
