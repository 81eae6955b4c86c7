"""scrub: verifies each segment of a node once in a period, and keeps in a state file what it found."""
