"""The follow driver: reads logs that grow, and that are rolled, truncated, compacted, deleted and replaced."""
