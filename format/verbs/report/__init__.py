"""report: the results of all scans of some log directories, collected in one pass, as tables for a page or document."""
