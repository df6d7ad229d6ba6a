"""Numba kernels: arrays and numbers in, arrays and numbers out.

Nothing here knows files, names or the terminal. Import a kernel inside the function that needs it, so
that `import surveyor` stays free of Numba.
"""
