"""The tutorial, replayed from its page: its commands are run and its files written, in a copy of the tree."""
