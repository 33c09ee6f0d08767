"""`jupyter gpupool policy`: an admin looks at the policy, tries another one, and goes back.

A file holds one command, `command` the group. `document` reads what an admin wrote, `wording` says
what came of it.
"""
