"""Trapline's own API, as a crawler in Python uses it: the loop of claim, fetch and settle, with nothing but URLs.

    own_api.py PROTOS ADDRESS
"""

import sys

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

refused(grpc.StatusCode.NOT_FOUND, lambda: frontier.Stats(pb.StatsRequest(crawl="nowhere")), "there is no crawl")
many = pb.AdmitRequest(crawl=CRAWL, candidates=[pb.Candidate()] * 1_000_000)
refused(grpc.StatusCode.INVALID_ARGUMENT, lambda: frontier.Admit(many), "send it in parts")
huge = pb.AdmitRequest(crawl=CRAWL, candidates=[pb.Candidate(request=pb.Request(url="https://a.example/", body=b"x" * (5 << 20)))])
refused(grpc.StatusCode.OUT_OF_RANGE, lambda: frontier.Admit(huge))
