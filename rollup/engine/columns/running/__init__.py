"""Deployed statements over columns: which of a component's statements go, what they take over from rows, how a batch goes
through both executors."""
