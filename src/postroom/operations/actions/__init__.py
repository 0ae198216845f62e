"""Actions: approvals, undo, corrections, protection, and the kill switch."""
