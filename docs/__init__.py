"""The documentation, and the program that keeps its generated parts true: ``python -m docs.generate``."""
