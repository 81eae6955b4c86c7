"""The on-disk formats of Apache Kafka and the operations over them.

Write ``from format.log.batch_table import …``; a bare import of this package would hide the builtin ``format``.
"""
