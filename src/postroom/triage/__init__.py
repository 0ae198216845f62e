"""Deciding about mail and acting on it: rules, the model, approvals, actions, undo, and the jobs of these."""
