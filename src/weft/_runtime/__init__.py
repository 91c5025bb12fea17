"""What the whole package runs on: settings, imports, forks, streams."""
