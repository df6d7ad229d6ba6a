"""A crawl in shards: one survey per part of the web, and the mass that they send each other.

placement   the shard of a page
ledger      the accounts of one shard, with proxies for the pages of others
channels    numbered batches of mass between two shards
node        one shard: its state, its journal and its channels
bounds      the joint coverage of the reports of all shards
"""
