"""The plugin of somebody else's has tests of its own, which run where it is installed."""

collect_ignore = ["thirdparty"]
