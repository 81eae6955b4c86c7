"""redact: a copy with keys, values and headers replaced."""
