"""An MCP server over runs and comparisons: read-only tools for coding agents, over stdio (AU-12, AU-13)."""
