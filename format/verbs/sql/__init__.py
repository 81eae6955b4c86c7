"""sql: questions in SQL over log directories, answered by DataFusion from tables that read only what is asked for."""
