"""The console: pages on this machine, over the same functions as the command line, for people who would rather look than read.

What is done stands in the modules of `ops`, which both call; here are pages, what guards them, and what runs on behind them.
"""
