"""The tables: what each record of an internal topic holds, one module per topic or kind of group.

To follow a new Kafka release, add a row where it added a field and raise the message's valid versions;
``tests/oracle/test_internal_topic_schemas.py`` holds every row against the release's own jars.
"""
