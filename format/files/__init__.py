"""Side files: one module for each kind, all with ``read``, a class for the content, and ``write``."""
