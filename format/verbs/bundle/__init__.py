"""bundle: one archive with everything about some log directories except keys, values and headers."""
