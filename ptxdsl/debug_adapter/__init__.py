"""The debugger for editors: it speaks the Debug Adapter Protocol (https://microsoft.github.io/debug-adapter-protocol).

A session is a process: ``python -m ptxdsl debug --dap`` speaks over its standard input and output, and runs the script
that a ``launch`` request names on the emulator. Editors that connect to a port get a process each.
"""
