"""boot: would a broker start on these log directories, and what would it do to each file."""
