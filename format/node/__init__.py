"""Segments, partitions and log directories, from their names, and the checkpoints beside them."""
