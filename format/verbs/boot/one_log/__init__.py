"""The load of one log: its leftovers, indexes, recovery, leader epochs and producer snapshots."""
