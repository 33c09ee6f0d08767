"""The process on a host that starts and watches things there, and makes the host so."""
