"""rebuild-index: fresh indexes from the log."""
