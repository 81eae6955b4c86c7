"""retention: why each segment is still there, and when it is deleted."""
