"""Parse what the web sends: URLs, HTML, robots.txt, sitemaps. Bytes or text in, values out; no IO."""
