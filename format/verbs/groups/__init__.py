"""groups: where each group is, how far behind, and who is in it, from the logs of the coordinators."""
