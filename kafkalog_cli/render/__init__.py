"""Rows as text: tables, lines, JSON, CSV."""
