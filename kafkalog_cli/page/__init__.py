"""The page that ``kafkalog report`` writes: charts, tables and text of a report as one HTML file."""
