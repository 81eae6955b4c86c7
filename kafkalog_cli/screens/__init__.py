"""Programs that fill the terminal."""
