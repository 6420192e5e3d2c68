"""Checkpoints: a killed training resumes and ends in the same model."""
