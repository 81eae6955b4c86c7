"""Stores: the file systems behind addresses (S3, web servers, what pyarrow and fsspec know), with one interface."""
