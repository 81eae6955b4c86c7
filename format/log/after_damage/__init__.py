"""How reading goes on after damage: which of the intact batches that follow belong to the log, and which are values."""
