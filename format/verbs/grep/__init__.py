"""grep: records that match."""
