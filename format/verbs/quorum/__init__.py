"""The modules of kafkalog quorum."""
