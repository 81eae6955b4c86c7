"""The scan protocol and its drivers: selection of logs and records, worker processes, following, and progress."""
