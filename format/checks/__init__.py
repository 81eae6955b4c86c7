"""One function per invariant; each yields findings."""
