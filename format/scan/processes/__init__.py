"""Worker processes: starting them, their messages and shared memory, and logs cut into ranges for them."""
