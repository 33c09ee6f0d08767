"""Jupyter Server extension: forwards to the manager, proxies dashboards, reports activity."""
