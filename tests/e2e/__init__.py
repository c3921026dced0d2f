"""The life of a stack, played on the stand-in with the real CDK command line: deploy, work, update under load, roll back, destroy."""
