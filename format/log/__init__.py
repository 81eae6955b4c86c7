"""The content of log segments: batches and records as columns, reading from batch to batch, and encoding."""
