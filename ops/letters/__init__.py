"""Dead letters: looked through, chosen, replayed with care, edited, discarded. The command line and the console call the same."""
