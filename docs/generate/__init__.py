"""What writes the generated parts of the documentation: tables, help pages, byte dumps, and what commands print."""
