"""Study of the paper: its data sets, its experiments, the report of their reproduction, and a demo."""
