"""metadata: the cluster as its metadata log describes it, and what changed when."""
