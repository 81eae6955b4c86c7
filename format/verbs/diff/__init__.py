"""diff: replicas of one partition against each other."""
