"""What is refused of the declarations of jobs and workers, and what their payloads may say about themselves."""
