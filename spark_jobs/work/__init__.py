"""How work is cut into tasks, done by them, and put together again."""
