"""Keys and values in words: plain kinds, and those of schema registries, whose schemas are read from ``_schemas``."""
