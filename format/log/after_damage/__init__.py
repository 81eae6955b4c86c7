"""Reading after damage: which of the intact batches that follow belong to the log, and which are parts of values."""
