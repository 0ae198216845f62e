"""The pages by which people sign in, prove again who they are, and look after their own ways in."""
