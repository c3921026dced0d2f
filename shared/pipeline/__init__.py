"""The pieces of one delivery's life, in the order in which shared.execution uses them. Authors of jobs import none."""
