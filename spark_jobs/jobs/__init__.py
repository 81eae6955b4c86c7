"""The entries for spark-submit, one for each scan. They pass their arguments to the command line of kafkalog."""
