"""Parse URLs, HTML, robots.txt and sitemaps. Bytes or text in, values out; no IO."""
