"""One module per command, imported only when its command runs: it takes options, calls the operation, renders.

Each module has a function of the command's name (hyphens become underscores) and ``EXAMPLES``, pairs of a command
line and what it does. Costly imports (numpy, codecs, operations) are inside that function.
"""
