"""State that crosses chunks: producers, transactions, totals."""
