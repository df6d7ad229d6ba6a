"""The page over surveys that `surveyor serve` opens: reads small files and tables, and keeps no state of its own."""
