"""What all commands that rewrite a partition share: sources, indexes, snapshots, publication."""
