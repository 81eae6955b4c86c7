"""doctor: what is wrong, the most urgent first, each with its evidence and the next command."""
