"""The schema tables: the fields of each record of an internal topic, one module per topic or kind of group.

For a new Kafka release, add a row for each new field and raise the message's valid versions;
``tests/oracle/test_internal_topic_schemas.py`` compares every row with the jars of the release.
"""
