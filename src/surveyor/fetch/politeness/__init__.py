"""When a host may be asked: delays, backoff, gates shared by address and domain, and being offline."""
