"""What is said on the wire: the API's models, the agent's link, and how a process is launched.

`launch` is read inside any environment and therefore needs nothing but the standard library.
"""
