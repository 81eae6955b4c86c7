"""Work that several processes share: the processes, what they send, and logs cut into ranges for them."""
