"""Studies: many systems, trained, evaluated and compared from one file."""
