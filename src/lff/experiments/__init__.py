"""Everything that needs the extra `experiments`: the command line, parameter tables, run records."""
