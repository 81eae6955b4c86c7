"""The on-disk formats of Apache Kafka and the operations over them.

Write ``from format.log.batch_table import …``: ``import format`` would hide the builtin function ``format``.
"""
