"""Trapline's own API, as a crawler in Python uses it: the loop of claim, fetch and settle, with nothing but URLs; all ten calls.

    own_api.py PROTOS ADDRESS
"""

import sys
import time

import grpc

from clients import channel, generated, refused, same

protos, address = sys.argv[1:]
pb, stubs = generated(protos, "trapline/v1/frontier.proto")
frontier = stubs.FrontierStub(channel(address))
CRAWL = "python"


def bare(*urls):
    return [pb.Candidate(request=pb.Request(url=url, metadata={"from": pb.Values(values=["py"])})) for url in urls]


settings = pb.Settings(settings=[pb.Setting(name="delay", value="0")])
change = pb.CrawlChange(create=pb.NewCrawl(settings=settings))
frontier.Steer(pb.SteerRequest(crawl=CRAWL, change=change))
same(
    list(frontier.Admit(pb.AdmitRequest(crawl=CRAWL, candidates=bare("https://a.example/", "nothing"))).admissions),
    [pb.ADMISSION_ADDED, pb.ADMISSION_REFUSED_MALFORMED],
)

# A tree of links, until nothing is left.
fetched, depth = set(), {}
while True:
    claimed = frontier.Claim(pb.ClaimRequest(crawl=CRAWL, urls=7, wait_ms=0))
    if not claimed.leases:
        assert claimed.exhausted, claimed
        break
    settlements = []
    for lease in claimed.leases:
        url = lease.request.url
        assert url not in fetched, url
        same(list(lease.request.metadata["from"].values), ["py"])
        fetched.add(url)
        links = bare(url + "0", url + "1") if len(url) < 24 else []
        settlements.append(pb.Settlement(lease=lease.id, done=pb.Done(visit=pb.Visit(status=200)), links=links))
    settled = frontier.Settle(pb.SettleRequest(crawl=CRAWL, settlements=settlements)).settled
    same({one.answer for one in settled}, {pb.SETTLED_DONE})
same(len(fetched), 2**7 - 1)
same(frontier.Stats(pb.StatsRequest(crawl=CRAWL)).urls.done, len(fetched))

answers = frontier.AdmitStream(pb.AdmitRequest(crawl=CRAWL, candidates=bare(f"https://s.example/{n}")) for n in range(20))
same([list(answer.admissions) for answer in answers], [[pb.ADMISSION_ADDED]] * 20)

# Settled in a stream, batch by batch, each lease twice: answers come in order, and the second one finds nothing to do.
frontier.Steer(pb.SteerRequest(crawl=CRAWL, queue=pb.QueueChange(key="s.example", terms=pb.Terms(concurrency=0))))
leases = list(frontier.Claim(pb.ClaimRequest(crawl=CRAWL, urls=20)).leases)
same(len(leases), 20)


def settling(lease):
    links = bare(lease.request.url + "/link")
    settlement = pb.Settlement(lease=lease.id, done=pb.Done(visit=pb.Visit(status=200)), links=links)
    return pb.SettleRequest(crawl=CRAWL, settlements=[settlement])


answers = frontier.SettleStream(settling(lease) for lease in leases for _ in range(2))
told = [[(one.answer, list(one.links)) for one in answer.settled] for answer in answers]
same(told, [[(pb.SETTLED_DONE, [pb.ADMISSION_ADDED])], [(pb.SETTLED_STALE, [])]] * 20)

# All URLs of a queue, a page at a time.
query, cursor, seen = pb.UrlsQuery(key="s.example"), None, []
while True:
    page = frontier.Scan(pb.ScanRequest(crawl=CRAWL, urls=query, cursor=cursor, limit=7))
    seen += [(row.request.url, row.state) for row in page.urls.rows]
    if not page.HasField("cursor"):
        break
    cursor = page.cursor
urls = [f"https://s.example/{n}" for n in range(20)]
expected = [(url, pb.URL_STATE_DONE) for url in urls] + [(url + "/link", pb.URL_STATE_PENDING) for url in urls]
same(sorted(seen), sorted(expected))

frontier.Flush(pb.FlushRequest())
before = time.time()
assert abs(frontier.Now(pb.NowRequest()).now_ms / 1000 - before) < 60, before

refused(grpc.StatusCode.NOT_FOUND, lambda: frontier.Stats(pb.StatsRequest(crawl="nowhere")), "there is no crawl")
many = pb.AdmitRequest(crawl=CRAWL, candidates=[pb.Candidate()] * 1_000_000)
refused(grpc.StatusCode.INVALID_ARGUMENT, lambda: frontier.Admit(many), "send it in parts")
huge = pb.AdmitRequest(crawl=CRAWL, candidates=[pb.Candidate(request=pb.Request(url="https://a.example/", body=b"x" * (5 << 20)))])
refused(grpc.StatusCode.OUT_OF_RANGE, lambda: frontier.Admit(huge))
