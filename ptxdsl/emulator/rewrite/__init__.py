"""PTX to PTX: what is expanded before lowering."""
