"""What is configured: settings, secrets and where they are redacted, the options of a run, what is installed."""
