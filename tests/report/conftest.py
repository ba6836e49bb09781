from in_browser import browser  # noqa: F401
