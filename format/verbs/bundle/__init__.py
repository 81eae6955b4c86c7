"""bundle: one archive with everything about some log directories but keys, values and headers."""
