"""producers: who wrote to partitions, with which epochs, sequences, batches and codecs."""
