"""Directory-wide scans on Spark: the fronts that run the operations of ``format`` on many machines."""
