"""The only place that knows SQL: transactions as generators, two runners, and the verbs that services call."""
