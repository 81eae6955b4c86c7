"""The entry for spark-submit, ``scan.py``, which takes a verb of ``kafkalog scan`` and its arguments."""
