"""A launch that can be stopped anywhere, looked at and taken back: for the prompt, and for editors."""
