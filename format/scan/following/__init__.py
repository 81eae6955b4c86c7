"""The follow driver: reads logs that grow, roll, are cut, compacted, deleted and replaced."""
