"""verify: checks logs and the files beside them, and reports findings."""
