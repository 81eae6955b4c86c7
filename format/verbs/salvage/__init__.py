"""salvage: every intact batch in a new directory."""
