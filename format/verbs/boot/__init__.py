"""boot: whether a broker would start on these log directories, and what it would do to each file."""
