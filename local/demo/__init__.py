"""The demo: situations as data, played on real messages, observed from outside, and judged by what they promise."""
