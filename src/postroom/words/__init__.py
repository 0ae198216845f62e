"""The words in which Postroom speaks to people, each said once: for pages, commands, notices, chat and mail alike.

What an action is called stands in its declaration (`core/actions/action.py`); sentences about it are made here.
"""
