"""Reading of files, local, remote and bundled: sources, read policies, the lock of a broker."""
