"""Dead letters: the reason beside each, their queue as operators work on it, and what people change about their jobs."""
