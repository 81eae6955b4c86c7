"""Writing a directory that appears whole or not at all."""
