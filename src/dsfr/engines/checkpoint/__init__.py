"""Training that can be killed at any round and go on from there."""
