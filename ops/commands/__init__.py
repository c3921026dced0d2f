"""The commands of tahan: each reads its words, calls what does the work, and shows it. Nothing is decided here."""
