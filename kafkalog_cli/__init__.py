"""The command line: parse options, call an operation of ``format``, render its results. It knows no file format."""
