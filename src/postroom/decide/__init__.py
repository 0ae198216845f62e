"""What is to be done with a message: rules first, then the model."""
