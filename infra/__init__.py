"""What is deployed, derived from the declared workers. The only package that may import aws_cdk."""
