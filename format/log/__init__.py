"""Segments of a log: batches and records as columns, the walk from batch to batch, and their encoding."""
