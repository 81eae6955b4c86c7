"""explore: a path as a tree that is read as it is opened, down to the fields of each byte."""
