"""The commands of `streamtensor`: each a file with its arguments (add) and what it does (run)."""
