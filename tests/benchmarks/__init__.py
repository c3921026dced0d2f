"""The benchmarks' arithmetic and counts, and the model of the deployed stack. Nothing here is timed."""
