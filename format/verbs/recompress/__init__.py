"""recompress: the same records with another codec."""
