"""What `paritrace doctor` looks at: the installation, the machine and one directory."""
