"""The command line: data on stdout, messages on stderr, exit codes that a scheduler can branch on.

Each command is one thin module: it loads the configuration, calls the library and renders the
result. A notebook can do the same through the same library functions. The commands import Spark
inside their functions, so that ``--help`` and the report of a misspelt key need not wait for it.
"""
