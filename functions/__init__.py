"""What the product does: one module per worker or entry point, each a Lambda function."""
