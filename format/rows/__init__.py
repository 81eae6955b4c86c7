"""Rows of output from columns: text, JSON lines, CSV and Arrow."""
