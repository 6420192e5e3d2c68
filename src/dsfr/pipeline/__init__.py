"""From files to a fitted model, whatever the engine, and the plan of a training before it runs."""
