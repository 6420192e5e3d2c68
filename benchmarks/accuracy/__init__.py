"""Test error of our methods and of their peers with few labels, on design and on judged tables."""
