"""Hudi Streamer's files and command lines, for pipelines that migrate; no other pipeline needs it.

``settings.py`` lists the settings that mean something here, ``translation.py`` turns them into
lakeingest's keys, ``command_line.py`` and ``tables.py`` read the arguments of the two commands.
"""
