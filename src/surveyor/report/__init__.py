"""Results for people and programs: terminal tables, CSV, JSON, and HTML files with plots."""
