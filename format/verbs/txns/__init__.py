"""txns: the transactions of partitions, and which of them hold back the last stable offset."""
