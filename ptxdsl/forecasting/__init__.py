"""How long a launch would take on a GPU that is not there, and why: docs/forecast.md.

``machines`` describes GPUs, ``sass`` reads the assembler's code, ``execution`` and ``timeline`` say how often and how
long, ``bounds`` what each resource takes, ``forecast`` puts it together.
"""
