"""How far two rankings of the same pages agree."""
