"""find: where an offset or a time lies."""
