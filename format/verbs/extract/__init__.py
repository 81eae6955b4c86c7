"""extract: records as Parquet, JSON lines or CSV."""
