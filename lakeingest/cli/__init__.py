"""The command line: data on stdout, messages on stderr, exit codes that a scheduler can branch on.

One module per command, each a thin hand that loads the configuration, calls the library and renders
what it returns. Whatever a command can do, a notebook can do through the same library function.
Spark is imported inside the commands, so that ``--help`` and a misspelt key answer at once.
"""
