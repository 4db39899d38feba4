"""The command line: parse, import lazily, call one function, print."""
