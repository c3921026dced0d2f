"""What a stage may say about a deployment, checked before anything is synthesised. Plain Python, no CDK."""
