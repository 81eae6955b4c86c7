"""The shared part of all commands that rewrite a partition: sources, indexes, snapshots, publication."""
