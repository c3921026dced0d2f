"""How a job is run safely. Knows no particular job."""
