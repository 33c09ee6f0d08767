"""Who gets which devices: pure functions, a snapshot goes in, a plan with its reasons comes out."""
