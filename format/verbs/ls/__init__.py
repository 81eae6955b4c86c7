"""ls: lists log directories, partitions and segments."""
