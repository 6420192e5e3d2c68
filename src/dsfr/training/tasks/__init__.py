"""What agents can be asked to do: declarations of tasks, their registry, and the checks of messages."""
