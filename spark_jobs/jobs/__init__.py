"""The entries for spark-submit: ``scan.py`` for every verb, the others as earlier releases had them."""
