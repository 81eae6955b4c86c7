"""Bundles: archives of what log directories hold apart from payload, read in place of these directories."""
