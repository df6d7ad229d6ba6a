"""Domain reputation scores, each with an interval: IN, WIN, supporters, TSE, bit vectors, HyperBall, trust."""
