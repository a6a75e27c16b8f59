"""Reports: every number in one format, and tables, statistics and comparisons made from it."""
