"""Pages of docs/ that follow from the code: settings, errors, and the map of the packages. It reads and writes; it decides nothing."""
