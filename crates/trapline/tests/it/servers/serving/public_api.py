"""The public URLFrontier API, as a client sees it that knows nothing of Trapline.

    public_api.py PROTOS ADDRESS before|after

`before` does every call and leaves things behind; `after`, once the service has been killed and begun again, looks for them.
"""

import sys
import threading
import time

import grpc

from clients import channel, generated, refused, same, until

protos, address, part = sys.argv[1:]
pb, stubs = generated(protos, "urlfrontier/urlfrontier.proto")
frontier = stubs.URLFrontierStub(channel(address))

OK, SKIPPED = pb.AckMessage.OK, pb.AckMessage.SKIPPED


def info(url, key="", crawl="", **metadata):
    values = {name: pb.StringList(values=values) for name, values in metadata.items()}
    return pb.URLInfo(url=url, key=key, crawlID=crawl, metadata=values)


def discovered(url, key="", crawl="", id="", **metadata):
    return pb.URLItem(discovered=pb.DiscoveredURLItem(info=info(url, key, crawl, **metadata)), ID=id)


def known(url, key="", crawl="", date=0, **metadata):
    return pb.URLItem(known=pb.KnownURLItem(info=info(url, key, crawl, **metadata), refetchable_from_date=date))


def put(*items):
    return [(ack.ID, ack.status) for ack in frontier.PutURLs(iter(items))]


def get(crawl, key="", urls=1, queues=100, lease=60):
    params = pb.GetParams(max_urls_per_queue=urls, max_queues=queues, key=key, delay_requestable=lease, crawlID=crawl)
    return [item.url for item in frontier.GetURLs(params)]


def queue(key, crawl):
    return pb.QueueWithinCrawlParams(key=key, crawlID=crawl)


def stats(key, crawl):
    found = frontier.GetStats(queue(key, crawl))
    return found.size, found.inProcess, found.counts["completed"], found.numberOfQueues


def delay(crawl, key, seconds):
    frontier.SetDelay(pb.QueueDelayParams(key=key, crawlID=crawl, delay_requestable=seconds))


def before():
    # Names of any characters, also those its reference server never serves again.
    assert len(frontier.ListNodes(pb.Empty()).values) == 1
    for crawl in ["plain", "with_under_score", "é/../%00 ☃"]:
        same(put(discovered("http://a_b.example/1", crawl=crawl, id="7")), [("7", OK)])
        same(put(discovered("http://a_b.example/1", crawl=crawl)), [("http://a_b.example/1", SKIPPED)])
        same(get(crawl), ["http://a_b.example/1"], crawl)
    assert {"plain", "with_under_score", "é/../%00 ☃"} <= set(frontier.ListCrawls(pb.Local()).values)

    # What is none.
    same(put(discovered("", crawl="plain"), pb.URLItem(ID="neither")), [("", SKIPPED), ("neither", SKIPPED)])
    same(put(discovered("http://a.example/", key="k" * 256, crawl="plain"))[0][1], SKIPPED)

    # Order by date, then by text; metadata comes back as it went in.
    now = int(time.time())
    items = [known("http://o.example/late", crawl="order", date=now - 5, m=["1", "2"])]
    items += [known(f"http://o.example/{n}", crawl="order", date=now - 10) for n in (3, 1, 2)]
    items += [known("http://o.example/never", crawl="order", date=now + 1000)]
    same([status for _, status in put(*items)], [OK] * 5)
    params = pb.GetParams(max_urls_per_queue=100, crawlID="order", delay_requestable=60)
    served = list(frontier.GetURLs(params))
    same([item.url[-4:] for item in served], ["le/1", "le/2", "le/3", "late"])
    same(list(served[3].metadata["m"].values), ["1", "2"])
    same((served[3].key, served[3].crawlID), ("o.example", "order"))
    same(stats("o.example", "order"), (5, 4, 0, 1))
    # Completed, and to be visited again.
    same(put(known("http://o.example/1", crawl="order"))[0][1], OK)
    same(put(known("http://o.example/1", crawl="order"))[0][1], OK)
    same(stats("o.example", "order"), (4, 3, 1, 1), "completing twice counts once")
    same(put(discovered("http://o.example/1", crawl="order"))[0][1], SKIPPED)
    status = frontier.GetURLStatus(pb.URLStatusRequest(url="http://o.example/1", key="o.example", crawlID="order"))
    same(status.known.refetchable_from_date, 0)
    never = pb.URLStatusRequest(url="http://o.example/nowhere", key="o.example", crawlID="order")
    refused(grpc.StatusCode.NOT_FOUND, lambda: frontier.GetURLStatus(never))

    # Batches.
    batch = pb.DiscoveredBatch(ID="b", items=[info(f"http://b.example/{n}", crawl="batch") for n in (1, 2, 1)])
    acks = list(frontier.PutDiscovered(iter([pb.DiscoveredBatch(ID="probe"), batch])))
    same([ack.ID for ack in acks], ["probe", "b"])
    same(list(acks[1].statuses), [OK, OK, SKIPPED])
    listed = [item.known.info.url for item in frontier.ListURLs(pb.ListUrlParams(crawlID="batch", size=10))]
    same(sorted(listed), ["http://b.example/1", "http://b.example/2"])
    same(frontier.CountURLs(pb.CountUrlParams(crawlID="batch", filter="EXAMPLE/2", ignoreCase=True)).value, 1)
    same(list(frontier.ListQueues(pb.Pagination(crawlID="batch")).values), ["b.example"])

    # A pause, which leaves puts alone.
    same(frontier.GetActive(pb.Local()).state, True)
    frontier.SetActive(pb.Active(state=False))
    same(get("batch"), [])
    same(put(discovered("http://b.example/3", crawl="batch"))[0][1], OK)
    frontier.SetActive(pb.Active(state=True))
    same(len(get("batch")), 1)

    # A pace, from the claim on, also without a settlement.
    put(*(discovered(f"http://p.example/{n}", crawl="pace") for n in range(4)))
    delay("pace", "p.example", 2)
    same(len(get("pace")), 1)
    begun = time.monotonic()
    same(get("pace"), [])
    until("its turn", lambda: get("pace"))
    assert time.monotonic() - begun > 1.5, time.monotonic() - begun

    # A crawl's limit, by what is completed.
    put(*(discovered(f"http://l.example/{n}", crawl="limit") for n in range(3)))
    delay("limit", "l.example", 0)
    frontier.SetCrawlLimit(pb.CrawlLimitParams(key="l.example", crawlID="limit", limit=1))
    first = until("the first", lambda: get("limit"))
    put(known(first[0], crawl="limit"))
    same(get("limit"), [], "one is completed")

    # What is removed is unknown.
    put(*(discovered(f"http://d.example/{n}", crawl="delete") for n in range(3)))
    put(discovered("http://e.example/", crawl="delete"))
    same(frontier.DeleteQueue(queue("d.example", "delete")).value, 3)
    same(put(discovered("http://d.example/1", crawl="delete"))[0][1], OK)
    put(discovered("http://x.example/", crawl="delete2"))
    same(frontier.DeleteCrawl(pb.DeleteCrawlMessage(value="delete")).value, 2)
    same(frontier.DeleteCrawl(pb.DeleteCrawlMessage(value="delete")).value, 0)
    same(get("delete2"), ["http://x.example/"])
    same(frontier.PurgeURLs(pb.PurgeUrlParams(crawlID="delete2", key="x.example", days=1)).value, 0)
    frontier.SetLogLevel(pb.LogLevelParams(package="x", level=pb.LogLevelParams.INFO))

    # Many at once: each URL is handed out once.
    put(*(discovered(f"http://h{n % 40}.example/{n}", crawl="many") for n in range(400)))
    delay("many", "", 1)
    for n in range(40):
        delay("many", f"h{n}.example", 0)
    handed, lock = [], threading.Lock()

    def worker():
        own = stubs.URLFrontierStub(channel(address))
        params = pb.GetParams(max_urls_per_queue=3, max_queues=5, crawlID="many", delay_requestable=600)
        empty = 0
        while empty < 20:
            got = [item.url for item in own.GetURLs(params)]
            empty = 0 if got else empty + 1
            with lock:
                handed.extend(got)
                if len(handed) >= 400:
                    return

    workers = [threading.Thread(target=worker) for _ in range(8)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    same((len(handed), len(set(handed))), (400, 400), "each once")

    # For the second part.
    put(*(discovered(f"http://s.example/{n}", crawl="stay", m=["x"]) for n in range(3)))
    same(len(get("stay", lease=600)), 1)
    put(discovered("http://blocked.example/", crawl="stay"))
    frontier.BlockQueueUntil(pb.BlockQueueParams(key="blocked.example", crawlID="stay", time=now + 3600))
    delay("stay", "s.example", 3600)
    # A queue that is not there yet.
    frontier.BlockQueueUntil(pb.BlockQueueParams(key="later.example", crawlID="stay", time=now + 3600))
    same(get("stay"), [])
    frontier.SetActive(pb.Active(state=False))


def after():
    same(frontier.GetActive(pb.Local()).state, False, "the pause is remembered")
    frontier.SetActive(pb.Active(state=True))
    same(stats("s.example", "stay"), (3, 1, 0, 1), "leases are remembered")
    put(discovered("http://later.example/", crawl="stay"))
    same(get("stay"), [], "delays and blocks are remembered")
    frontier.BlockQueueUntil(pb.BlockQueueParams(key="blocked.example", crawlID="stay", time=0))
    same(get("stay"), ["http://blocked.example/"])
    same(get("limit"), [], "limits are remembered")
    frontier.SetCrawlLimit(pb.CrawlLimitParams(key="l.example", crawlID="limit", limit=0))
    same(len(until("it is lifted", lambda: get("limit"))), 1)
    same(put(discovered("http://o.example/1", crawl="order"))[0][1], SKIPPED, "what is completed is known")


{"before": before, "after": after}[part]()
