"""Agreement of two rankings of the same pages."""
