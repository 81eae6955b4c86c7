"""compaction: what the cleaner would keep and free, where it stands, and what stops it."""
