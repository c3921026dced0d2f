"""What a user would pick or wire instead of us, each as its own documentation advises."""
