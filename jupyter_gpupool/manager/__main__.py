"""`python -m jupyter_gpupool.manager`."""

from jupyter_gpupool.manager.app import ManagerApp

if __name__ == "__main__":
    ManagerApp.launch_instance()
