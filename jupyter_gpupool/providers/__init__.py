"""Where hosts come from: SSH, Slurm, Kubernetes. The elasticity work fills this room."""
