"""One module per command, imported only when its command runs: parse, call the operation, render.

Each holds a function of the command's name (hyphens become underscores) and ``EXAMPLES``, pairs of a command line
and what it does. What is costly to import (numpy, codecs, operations) is imported inside that function.
"""
