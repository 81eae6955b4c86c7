"""Log directories, partitions and segments, from the names of their files, and the checkpoints of log directories."""
