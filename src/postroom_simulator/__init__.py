"""Outgoing mail in virtual time: what tenants would wait under the fair queue, and under other orders."""
