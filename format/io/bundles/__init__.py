"""Bundles: archives of log directories without the payload of records, which can be read like the directories."""
