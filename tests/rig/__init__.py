"""Real services that tests start by themselves: plain processes, no container, no fixed port."""
