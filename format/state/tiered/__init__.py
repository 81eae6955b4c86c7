"""Tiered logs: the metadata of remote storage, and the objects in it."""
