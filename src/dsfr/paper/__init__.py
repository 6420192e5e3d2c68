"""What only the study of the paper needs: data sets, experiments, reproduction, demo."""
