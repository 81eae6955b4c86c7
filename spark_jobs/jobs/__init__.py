"""The jobs: each one operation of ``format`` over a plan; the file's name is the job's."""
