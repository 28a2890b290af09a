"""The language server: what editors show of findings while a script is written."""
