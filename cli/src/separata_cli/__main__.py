"""``python -m separata_cli``, where no script is on the path."""

from .main import main

main()
