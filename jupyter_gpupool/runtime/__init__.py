"""What runs as the user, inside any environment: zygote, scheduler, worker."""
