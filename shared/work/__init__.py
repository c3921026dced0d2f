"""What a unit of work is made of: what it stages, its calls to the outside, the steps and parts of long jobs."""
