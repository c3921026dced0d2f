"""Guards and their mutants: each guard, taken out, must turn its test red."""
