"""A claim that hibernates, and what its user asks of it."""

from datetime import timedelta
from functools import partial

from jupyter_gpupool.manager.service.hibernating import (
    HibernateClaim,
    ResumeClaim,
    hibernate_claim,
    resume_claim,
)
from jupyter_gpupool.protocol.api import Role

DAY = timedelta(days=1)


async def hibernate(pool, claim, user="ann", role=Role.USER, key=None):
    """A user wants its devices given back."""
    command = HibernateClaim(caller=pool.user(user, role), claim_id=claim.id, key=key)
    await pool.service.execute(partial(hibernate_claim, command=command))
    return pool.now(claim)


async def resume(pool, claim, user="ann"):
    """A user wants devices for it again."""
    command = ResumeClaim(caller=pool.user(user), claim_id=claim.id)
    await pool.service.execute(partial(resume_claim, command=command))
    return pool.now(claim)
