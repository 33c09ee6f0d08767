"""`jupyter gpupool doctor`: finds what a user would stumble on, and says how to mend each.

A check looks, which has effects on nothing, and gives what it saw to a pure judge. `checks` lists
them, `examination` runs them at once, `report` shows what was found.
"""
