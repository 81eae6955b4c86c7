"""The views of the data source, and its options."""
