"""diff: compares the replicas of partitions."""
