"""Reading many logs: selection, chunks, worker processes and progress."""
