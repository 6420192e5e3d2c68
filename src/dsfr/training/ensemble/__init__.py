"""Several rule bases: relevance, shares, calibration."""
