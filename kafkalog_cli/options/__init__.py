"""The options of the commands: groups as frozen dataclasses, each option and each default stated once.

A command is a function whose parameters are groups; ``groups.as_command`` turns it into the function of single options
that typer needs. A group that only one command has is in the module of the command.
"""
