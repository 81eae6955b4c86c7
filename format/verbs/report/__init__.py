"""report: what all scans say about some log directories, collected in one pass, as tables for a page or a document."""
