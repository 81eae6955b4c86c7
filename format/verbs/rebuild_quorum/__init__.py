"""rebuild-quorum: metadata directories from which new controllers start, made of a copy that is left."""
