#!/usr/bin/env python3
"""Simulates network conditions between namespaces in user space, where the kernel has no `netem`.

    weather.py carry DEVICE@NAMESPACE:DEVICE@NAMESPACE …
    weather.py ping ADDRESS COUNT

`carry` creates each link, two TUN devices in two namespaces, and forwards what either end sends, as `netem` would. Each
packet gets a random delay of its own, so packets overtake one another, and some are lost. For each line on its input,
it writes one to its output: "DELAY JITTER LOSS" (ms, ms, %) sets the conditions in both directions of every link, and
the reply says how many packets were carried and lost since the last one. It ends when its input ends.

`ping` measures a link: how many echo requests were sent and lost, and the median time of the others in ms.
"""

import collections
import ctypes
import fcntl
import heapq
import os
import random
import select
import socket
import statistics
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 1, 0x1000
CLONE_NEWNET = 0x40000000
# Maximum packets queued in one direction of a link, as in `netem`. Packets beyond it are lost.
ROOM = 1000


def tun(end):
    """Creates the device DEVICE@NAMESPACE in that namespace and returns its descriptor."""
    device, namespace = end.split("@")
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{namespace}") as there:
        if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter the network {namespace}")
    # The device belongs to the namespace in which it's opened, and stays there when this process enters another one.
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
    return fd


def carry(links):
    other = {}
    for link in links:
        one, two = map(tun, link.split(":"))
        other[one], other[two] = two, one
    delay = jitter = loss = 0.0
    under_way = []  # (time due, a number that keeps order, destination, packet)
    waiting = collections.Counter()
    carried = lost = number = 0
    poll = select.poll()
    for fd in [0, *other]:
        poll.register(fd, select.POLLIN)
    print("ready", flush=True)
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) * 1000 if under_way else None
        # `poll` rounds the timeout up, so waiting for a packet due in less than a millisecond doesn't become a busy
        # loop.
        for fd, _ in poll.poll(wait):
            if fd == 0:
                line = sys.stdin.readline()
                if not line:
                    return
                delay, jitter, loss = map(float, line.split())
                print(f"carried {carried} lost {lost}", flush=True)
                carried = lost = 0
                continue
            to = other[fd]
            now = time.monotonic()
            while True:
                try:
                    packet = os.read(fd, 65536)
                except OSError:  # nothing more to read
                    break
                if random.random() * 100 < loss or waiting[to] >= ROOM:
                    lost += 1
                    continue
                late = (delay + random.uniform(-jitter, jitter)) / 1000
                number += 1
                waiting[to] += 1
                heapq.heappush(under_way, (now + max(0.0, late), number, to, packet))
        now = time.monotonic()
        while under_way and under_way[0][0] <= now:
            _, _, to, packet = heapq.heappop(under_way)
            waiting[to] -= 1
            try:
                os.write(to, packet)
                carried += 1
            except OSError:  # that end is down: the link is cut
                lost += 1


def checksum(data):
    words = sum(struct.unpack(f"!{len(data) // 2}H", data))
    words = (words >> 16) + (words & 0xFFFF)
    return ~(words + (words >> 16)) & 0xFFFF


def ping(address, count):
    echo = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    own = os.getpid() & 0xFFFF
    sent, took = {}, {}
    begun = time.monotonic()
    while time.monotonic() < begun + count * 0.004 + 2 and len(took) < count:
        due = begun + len(sent) * 0.004
        if len(sent) < count and time.monotonic() >= due:
            head = struct.pack("!BBHHH", 8, 0, 0, own, len(sent))
            head = struct.pack("!BBHHH", 8, 0, checksum(head), own, len(sent))
            sent[len(sent)] = time.monotonic()
            echo.sendto(head, (address, 0))
            continue
        rest = due - time.monotonic() if len(sent) < count else 0.1
        if select.select([echo], [], [], max(0.0, rest))[0]:
            packet = echo.recv(2048)
            kind, _, _, whose, which = struct.unpack("!BBHHH", packet[20:28])
            if kind == 0 and whose == own and which in sent:
                took.setdefault(which, (time.monotonic() - sent[which]) * 1000)
    middle = statistics.median(took.values()) if took else float("inf")
    print(f"{count} {count - len(took)} {middle:.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["carry"] and len(sys.argv) > 2:
        carry(sys.argv[2:])
    elif sys.argv[1:2] == ["ping"] and len(sys.argv) == 4:
        ping(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(__doc__)
