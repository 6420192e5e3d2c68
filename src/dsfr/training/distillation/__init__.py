"""Distillation: a trained mixture as few short rules, from sums over agents."""
