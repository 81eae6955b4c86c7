"""Makes what a release consists of, up to the upload: ``python -m release``."""
