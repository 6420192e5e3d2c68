"""Feature maps that enter the model linearly: Takagi-Sugeno rules and wavelets."""
