"""What all commands that write a partition anew share: sources, indexes, snapshots, publication."""
