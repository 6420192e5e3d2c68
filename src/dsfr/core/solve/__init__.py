"""Linear systems, summed statistics, and how ridge and penalty weights are chosen from them."""
