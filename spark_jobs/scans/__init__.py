"""The scans: what each makes of a plan on Spark, with the operations of ``format``."""
