"""`python -m paritrace`: the same command line, for use as the inner command of any launcher."""

from paritrace.cli.start import main

if __name__ == "__main__":
    main()
