"""What users see of business items, and how the cache keeps it: for the workers that change them and the routes that show them."""
