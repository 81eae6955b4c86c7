"""Files, local and remote, opened for reading only: sources, read policies, the lock of a broker."""
