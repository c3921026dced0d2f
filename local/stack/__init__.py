"""The synthesised template in an AWS stand-in, a real Valkey, and the outside systems beside them; up for a run or until Ctrl-C."""
