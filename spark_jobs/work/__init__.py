"""The work of scans and views: plans, their tasks, and the results of tasks put together."""
