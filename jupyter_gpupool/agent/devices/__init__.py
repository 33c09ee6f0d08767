"""What devices a host has, how they are, and the host-wide lock on each.

`opening.open_devices` is where the agent begins; `lock.DeviceLocks` keeps two pools on one host
from leasing the same device.
"""
