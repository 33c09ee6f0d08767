"""Devices, real ones by NVML and simulated ones, behind one small interface."""
