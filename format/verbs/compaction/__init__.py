"""compaction: what the cleaner would keep and free, where its checkpoint is, and what stops it."""
