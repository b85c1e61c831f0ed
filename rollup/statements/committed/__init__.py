"""What is committed of an app's statements, and its named windows and tables for whoever only reads."""
