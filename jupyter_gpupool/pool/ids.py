"""Names of things, as types that cannot be mixed up.

Made at the edge (the manager and the agent own the randomness), only carried here.
"""

from typing import NewType

ClaimId = NewType("ClaimId", str)
LeaseId = NewType("LeaseId", str)
HostId = NewType("HostId", str)
DeviceUuid = NewType("DeviceUuid", str)
"""As NVML says it: "GPU-…" or "MIG-…"; a simulated device is "SIM-…"."""
KernelId = NewType("KernelId", str)
"""As Jupyter calls a kernel, or what a script made up for itself."""
UserName = NewType("UserName", str)
