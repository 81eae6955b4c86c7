"""The verbs: each module an iterator of rows or result objects, and of findings."""
