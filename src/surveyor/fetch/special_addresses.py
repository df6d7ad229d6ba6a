"""Tables of addresses and names that a crawler must not connect to: the IANA registries and cloud agents.

Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890 and its successors), the multicast
registries, and the documentation of cloud providers. A block is refused unless the registry lists it as globally
reachable. A reachable block inside a refused one is refused as well: web servers do not use such addresses.

`docs/reference/addresses.md` is generated from these tables; a test compares them.
"""

from __future__ import annotations

from typing import NamedTuple


class Block(NamedTuple):
    """One row of a registry."""

    network: str
    kind: str  # as in messages: "private", "loopback", …
    name: str  # as in the registry
    source: str
    reachable: bool = False  # "Globally Reachable" in the registry


IPV4 = (
    Block("0.0.0.0/8", "unspecified", '"This network"', "RFC 791"),
    Block("10.0.0.0/8", "private", "Private-Use", "RFC 1918"),
    Block("100.64.0.0/10", "shared", "Shared Address Space", "RFC 6598"),
    Block("127.0.0.0/8", "loopback", "Loopback", "RFC 1122"),
    Block("169.254.0.0/16", "link-local", "Link Local", "RFC 3927"),
    Block("172.16.0.0/12", "private", "Private-Use", "RFC 1918"),
    Block("192.0.0.0/24", "reserved", "IETF Protocol Assignments", "RFC 6890"),
    Block("192.0.0.0/29", "reserved", "IPv4 Service Continuity Prefix", "RFC 7335"),
    Block("192.0.0.8/32", "reserved", "IPv4 dummy address", "RFC 7600"),
    Block("192.0.0.9/32", "reserved", "Port Control Protocol Anycast", "RFC 7723", reachable=True),
    Block("192.0.0.10/32", "reserved", "Traversal Using Relays around NAT Anycast", "RFC 8155", reachable=True),
    Block("192.0.0.170/31", "reserved", "NAT64/DNS64 Discovery", "RFC 8880"),
    Block("192.0.2.0/24", "reserved", "Documentation (TEST-NET-1)", "RFC 5737"),
    Block("192.31.196.0/24", "public", "AS112-v4", "RFC 7535", reachable=True),
    Block("192.52.193.0/24", "public", "AMT", "RFC 7450", reachable=True),
    Block("192.88.99.0/24", "reserved", "Deprecated (6to4 Relay Anycast)", "RFC 7526"),
    Block("192.168.0.0/16", "private", "Private-Use", "RFC 1918"),
    Block("192.175.48.0/24", "public", "Direct Delegation AS112 Service", "RFC 7534", reachable=True),
    Block("198.18.0.0/15", "reserved", "Benchmarking", "RFC 2544"),
    Block("198.51.100.0/24", "reserved", "Documentation (TEST-NET-2)", "RFC 5737"),
    Block("203.0.113.0/24", "reserved", "Documentation (TEST-NET-3)", "RFC 5737"),
    Block("224.0.0.0/4", "multicast", "Multicast", "RFC 5771"),
    Block("240.0.0.0/4", "reserved", "Reserved", "RFC 1112"),
    Block("255.255.255.255/32", "reserved", "Limited Broadcast", "RFC 919"),
)
IPV6 = (
    Block("::/128", "unspecified", "Unspecified Address", "RFC 4291"),
    Block("::1/128", "loopback", "Loopback Address", "RFC 4291"),
    Block("::/96", "reserved", "IPv4-compatible Address (deprecated)", "RFC 4291"),
    Block("::ffff:0:0/96", "reserved", "IPv4-mapped Address", "RFC 4291"),
    Block("::ffff:0:0:0/96", "reserved", "IPv4-translated Address", "RFC 2765"),
    Block("64:ff9b::/96", "public", "IPv4-IPv6 Translation (NAT64)", "RFC 6052", reachable=True),
    Block("64:ff9b:1::/48", "private", "IPv4-IPv6 Translation, local use", "RFC 8215"),
    Block("100::/64", "reserved", "Discard-Only Address Block", "RFC 6666"),
    Block("100:0:0:1::/64", "reserved", "Dummy IPv6 Prefix", "RFC 9780"),
    Block("2001::/23", "reserved", "IETF Protocol Assignments", "RFC 2928"),
    Block("2001::/32", "reserved", "Teredo", "RFC 4380"),
    Block("2001:1::1/128", "reserved", "Port Control Protocol Anycast", "RFC 7723", reachable=True),
    Block("2001:1::2/128", "reserved", "Traversal Using Relays around NAT Anycast", "RFC 8155", reachable=True),
    Block("2001:1::3/128", "reserved", "DNS-SD Service Registration Protocol Anycast", "RFC 9665", reachable=True),
    Block("2001:2::/48", "reserved", "Benchmarking", "RFC 5180"),
    Block("2001:3::/32", "reserved", "AMT", "RFC 7450", reachable=True),
    Block("2001:4:112::/48", "reserved", "AS112-v6", "RFC 7535", reachable=True),
    Block("2001:10::/28", "reserved", "Deprecated (previously ORCHID)", "RFC 4843"),
    Block("2001:20::/28", "reserved", "ORCHIDv2", "RFC 7343", reachable=True),
    Block("2001:30::/28", "reserved", "Drone Remote ID Protocol Entity Tags", "RFC 9374", reachable=True),
    Block("2001:db8::/32", "reserved", "Documentation", "RFC 3849"),
    Block("2002::/16", "reserved", "6to4", "RFC 3056"),
    Block("2620:4f:8000::/48", "public", "Direct Delegation AS112 Service", "RFC 7534", reachable=True),
    Block("3fff::/20", "reserved", "Documentation", "RFC 9637"),
    Block("5f00::/16", "reserved", "Segment Routing (SRv6) SIDs", "RFC 9602"),
    Block("fc00::/7", "private", "Unique-Local", "RFC 4193"),
    Block("fe80::/10", "link-local", "Link-Local Unicast", "RFC 4291"),
    Block("fec0::/10", "private", "Site-Local Unicast (deprecated)", "RFC 3879"),
    Block("ff00::/8", "multicast", "Multicast", "RFC 4291"),
)
CLOUD = "cloud agent"
CLOUDS = (  # most are in a block above; the others are reachable only from inside that cloud
    Block("168.63.129.16/32", CLOUD, "Azure host agent (WireServer), DNS and health probes", "Microsoft Azure"),
    Block("169.254.169.254/32", CLOUD, "instance metadata", "AWS, Azure, Google Cloud, Oracle, OpenStack and others"),
    Block("169.254.169.253/32", CLOUD, "DNS of a virtual network", "AWS"),
    Block("169.254.170.2/32", CLOUD, "credentials of ECS tasks", "AWS"),
    Block("169.254.170.23/32", CLOUD, "credentials of EKS pods", "AWS"),
    Block("169.254.42.42/32", CLOUD, "instance metadata", "Scaleway"),
    Block("100.100.100.200/32", CLOUD, "instance metadata", "Alibaba Cloud"),
    Block("192.0.0.192/32", CLOUD, "instance metadata (classic)", "Oracle Cloud"),
    Block("192.80.8.124/32", CLOUD, "instance metadata", "Equinix Metal"),
    Block("161.26.0.0/16", CLOUD, "infrastructure service endpoints", "IBM Cloud"),
    Block("166.8.0.0/14", CLOUD, "private service endpoints", "IBM Cloud"),
    Block("fd00:ec2::254/128", CLOUD, "instance metadata", "AWS"),
    Block("fd00:ec2::253/128", CLOUD, "DNS of a virtual network", "AWS"),
    Block("fd00:ec2::23/128", CLOUD, "credentials of EKS pods", "AWS"),
    Block("fd20:ce::254/128", CLOUD, "instance metadata", "Google Cloud"),
    Block("fd00:c1::a9fe:a9fe/128", CLOUD, "instance metadata", "Oracle Cloud"),
    Block("fd00:42::42/128", CLOUD, "instance metadata", "Scaleway"),
)
METADATA_NAMES = {  # refused by name, without a lookup
    "metadata": "Google Cloud",
    "metadata.google.internal": "Google Cloud",
    "metadata.goog": "Google Cloud",
    "instance-data": "AWS",
    "instance-data.ec2.internal": "AWS",
    "metadata.azure.internal": "Microsoft Azure",
    "metadata.tencentyun.com": "Tencent Cloud",
    "metadata.packet.net": "Equinix Metal",
    "metadata.platformequinix.com": "Equinix Metal",
    "api.metadata.cloud.ibm.com": "IBM Cloud",
    "rancher-metadata": "Rancher",
}
UNRESOLVED = ("test", "example", "invalid")  # top-level domains that are never looked up (RFC 6761)
LOCALHOST = "localhost"  # and all names below it are this machine (RFC 6761)
CARRIERS = (  # IPv6 blocks whose addresses embed an IPv4 address, and the number of bits after it
    ("::ffff:0:0/96", 0),
    ("::ffff:0:0:0/96", 0),
    ("64:ff9b::/96", 0),
    ("::/96", 0),
    ("2002::/16", 80),
)
ISATAP = frozenset({0x00005EFE, 0x02005EFE})  # the third 32 bits of an address that ends in an IPv4 address
GLOBAL_6 = "2000::/3"  # the only IPv6 global unicast range in use (RFC 4291); all else is refused
NAMED_KINDS = frozenset({"loopback", "private"})  # networks of the user, which a seed URL may allow
