"""The commands: a folder for each."""
