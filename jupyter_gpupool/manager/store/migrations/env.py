"""Run by Alembic: applies the revisions on the connection that `migrate.py` hands over."""

from alembic import context

from jupyter_gpupool.manager.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transactional_ddl=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
