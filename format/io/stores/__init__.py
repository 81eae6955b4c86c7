"""Stores: the file systems behind addresses (S3, web servers, those of pyarrow and fsspec), with one interface."""
