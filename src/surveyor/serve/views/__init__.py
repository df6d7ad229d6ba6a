"""One module for each page: a function from a request to a `Page`."""
