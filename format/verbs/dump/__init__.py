"""dump: any file of a log directory, decoded."""
