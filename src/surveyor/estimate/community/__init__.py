"""What the whole web thinks of local pages, from a few more pages around them."""
