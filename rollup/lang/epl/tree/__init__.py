"""What an EPL text says, as frozen nodes: expressions, streams and patterns, contexts, statements.

Every node knows where it stands in the text (`at`), which does not count when nodes are compared.
"""
