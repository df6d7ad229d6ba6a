"""What remembers a crawl."""
