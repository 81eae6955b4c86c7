"""The command line: parse, call one operation of ``format``, render. Knows no byte of any file."""
