"""The outbound queue: whose turn it is, delivery, its pace, notices and statistics."""
