"""groups: where each group is, how far behind, and its members, from the logs of the coordinators."""
