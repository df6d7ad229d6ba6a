"""The same commands on several processes or machines, with Ray: the only package that imports it."""
