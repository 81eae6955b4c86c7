"""ls: what a path holds."""
