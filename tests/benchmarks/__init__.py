"""The benchmarks' arithmetic and counts. Nothing here is timed."""
