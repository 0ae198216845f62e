"""The databases: connections, transactions, statements and migrations."""
