"""From stored results to tables, figures, claims and pages. Nothing here computes an experiment."""
