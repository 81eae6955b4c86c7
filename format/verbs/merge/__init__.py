"""salvage --merge: one log of each partition, made of the intact batches of all its replicas."""
