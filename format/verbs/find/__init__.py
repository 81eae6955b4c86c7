"""find: looks up an offset or a time."""
