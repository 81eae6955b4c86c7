"""Tiered logs: what the metadata of remote storage says, and the objects that are there."""
