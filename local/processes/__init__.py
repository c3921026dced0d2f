"""Child processes that do not outlive us, and what they may know of this machine."""
