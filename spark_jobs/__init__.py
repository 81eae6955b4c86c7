"""The verbs of ``format`` on Spark, over many machines, and the data source ``kafkalog``."""
