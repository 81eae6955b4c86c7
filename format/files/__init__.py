"""Side files: one module for each kind, with the same shape."""
