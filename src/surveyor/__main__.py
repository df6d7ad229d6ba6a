"""`python -m surveyor` is `surveyor`."""

from surveyor.cli import main

main()
