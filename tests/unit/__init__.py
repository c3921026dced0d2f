"""One module at a time, over memory stores and a clock that is told."""
