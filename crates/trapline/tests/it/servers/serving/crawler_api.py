"""The crawler as a service, as a program in Python uses it: it tells what to fetch, listens, and steers. The sites are its own, so that it
sees what was asked for, and when.

    crawler_api.py PROTOS ADDRESS
"""

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc

from clients import channel, generated, refused, same, until

protos, address = sys.argv[1:]
pb, stubs = generated(protos, "trapline/v1/crawler.proto")
crawler = stubs.CrawlerStub(channel(address))
INVALID = grpc.StatusCode.INVALID_ARGUMENT


class Site:
    """A chain of pages, `/1` to `/9`, and one that is another with each visit; everything else is not there."""

    def __init__(self, host):
        self.asked = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.asked.append((self.path, time.monotonic()))
                number = self.path[1:]
                if number.isdigit():
                    self.answer(200, f"<title>Page {number}</title><a href=/{int(number) + 1}>next</a>")
                elif self.path.startswith("/page"):
                    self.answer(200, "<title>The same</title>")
                elif self.path == "/changing":
                    self.answer(200, f"<title>Visit {len(site.paths())}</title>")
                else:
                    self.answer(404, "")

            def answer(self, status, body):
                self.send_response(status)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer((host, 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.host, self.base = host, f"http://{host}:{server.server_port}"

    def url(self, path):
        return self.base + path

    def paths(self):
        return [path for path, _ in self.asked if path != "/robots.txt"]


class Listener:
    """Hears results as they come."""

    def __init__(self, hosts=(), statuses=()):
        self.results = []
        self.stream = crawler.StreamResults(pb.StreamResultsRequest(hosts=hosts, statuses=statuses))
        # Empty: from now on it is heard.
        same(next(self.stream), pb.StreamResultsResponse())
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        try:
            for told in self.stream:
                assert not told.missed, told
                self.results.append(told.result)
        except grpc.RpcError:
            pass

    def urls(self):
        return [result.url for result in self.results]

    def heard(self, count):
        """So many results, once they are there."""
        until(f"{count} results", lambda: len(self.results) >= count)
        return self.results[:count]


def submit(*urls, **how):
    told = crawler.SubmitUrls(pb.SubmitUrlsRequest(urls=urls, **how)).submissions
    return [one.answer for one in told]


def status():
    return crawler.GetStatus(pb.GetStatusRequest())


def idle():
    return until("it has nothing to do", lambda: (found := status()).pending + found.in_flight == 0 and found)


def tell(state):
    return crawler.SetCrawlerState(pb.SetCrawlerStateRequest(state=state)).state


def policy(hosts, **terms):
    return crawler.UpsertDomainPolicy(pb.UpsertDomainPolicyRequest(hosts=hosts, **terms)).answer


one, two = Site("127.0.0.11"), Site("127.0.0.12")
until("it runs", lambda: status().state == pb.CRAWLER_STATE_RUNNING)
everything = Listener()
missing_of_two = Listener(hosts=[two.host], statuses=["4xx"])
wrong = Listener(statuses=["404", "5xx", "error"])

# Two links away from the seed and no further; what is no URL is told so, and keeps nobody.
answers = submit(one.url("/1"), one.url("/1"), "no url:", "mailto:a@b.example", depth_limit=2)
REFUSED = pb.SUBMISSION_REFUSED
same(answers, [pb.SUBMISSION_ADDED, pb.SUBMISSION_KNOWN, REFUSED, REFUSED])
first = everything.heard(3)
same([result.url for result in first], [one.url(f"/{n}") for n in (1, 2, 3)])
same([(result.depth, result.title, result.outcome) for result in first][2], (2, "Page 3", "done"))
same((first[0].seed, first[0].status, first[0].is_revisit), (one.url("/1"), 200, False))
found = idle()
same((found.done, found.pages, one.paths()), (3, 3, ["/1", "/2", "/3"]))
assert found.crawl and found.now_ms and found.workers_max, found

# Filters of hosts and statuses.
same(submit(one.url("/gone"), two.url("/gone"), two.url("/page")), [pb.SUBMISSION_ADDED] * 3)
same({result.url for result in everything.heard(6)[3:]}, {one.url("/gone"), two.url("/gone"), two.url("/page")})
missing_of_two.heard(1)
wrong.heard(2)
same(missing_of_two.urls(), [two.url("/gone")])
same(set(wrong.urls()), {one.url("/gone"), two.url("/gone")})

# Paused, it takes URLs and asks for none; then those of a higher priority come first.
same(tell(pb.CRAWLER_STATE_PAUSED), pb.CRAWLER_STATE_PAUSED)
before = one.paths()
same(submit(one.url("/page-low-1"), one.url("/page-low-2"), priority=-100), [pb.SUBMISSION_ADDED] * 2)
same(submit(one.url("/page-usual")), [pb.SUBMISSION_ADDED])
same(submit(one.url("/page-high"), priority=127), [pb.SUBMISSION_ADDED])
paused = status()
same((paused.state, paused.pending, one.paths()), (pb.CRAWLER_STATE_PAUSED, 4, before))
same(tell(pb.CRAWLER_STATE_RUNNING), pb.CRAWLER_STATE_RUNNING)
everything.heard(10)
same(one.paths()[len(before) :], ["/page-high", "/page-usual", "/page-low-1", "/page-low-2"])

# A policy: a delay, and what is not wanted of a host.
assert policy(two.host, delay_ms=600, options={"exclude": '["/never"]'})
same(submit(two.url("/page-1"), two.url("/page-2"), two.url("/never")), [pb.SUBMISSION_ADDED] * 2 + [REFUSED])
everything.heard(12)
moments = dict(two.asked)
between = abs(moments["/page-2"] - moments["/page-1"])
assert between >= 0.6, between
same(submit(one.url("/page-never")), [pb.SUBMISSION_ADDED], "another host has no such policy")
everything.heard(13)

# Once more: pages by their URLs, and all of a host.
same(submit(one.url("/changing")), [pb.SUBMISSION_ADDED])
everything.heard(14)
idle()
same(submit(one.url("/changing")), [pb.SUBMISSION_KNOWN])
again = crawler.ForceRecrawl(
    pb.ForceRecrawlRequest(urls=[one.url("/changing"), one.url("/page-usual"), one.url("/nowhere"), "http://"])
)
same(list(again.urls), [pb.RECRAWL_QUEUED, pb.RECRAWL_QUEUED, pb.RECRAWL_UNKNOWN, pb.RECRAWL_MALFORMED])
visits = {result.url: result for result in everything.heard(16)[14:]}
same({url: (visit.is_revisit, visit.changed) for url, visit in visits.items()},
     {one.url("/changing"): (True, True), one.url("/page-usual"): (True, False)})
idle()
of_two = {result.url for result in everything.results if result.url.startswith(two.base)}
again = crawler.ForceRecrawl(pb.ForceRecrawlRequest(hosts=[two.base.removeprefix("http://")]))
same({result.url for result in everything.heard(16 + len(of_two))[16:]}, of_two)
same((len(of_two), len(again.urls)), (4, 0))

# What makes no sense is told, and changes nothing.
state = idle()
for call, words in [
    (lambda: submit(one.url("/x"), priority=128), "priority"),
    (lambda: submit(*[one.url("/x")] * 10_001), "send them in parts"),
    (lambda: tell(pb.CRAWLER_STATE_ENDED), "state"),
    (lambda: tell(77), "state"),
    (lambda: tell(pb.CRAWLER_STATE_UNSPECIFIED), "state"),
    (lambda: next(crawler.StreamResults(pb.StreamResultsRequest(statuses=["6xx"]))), "statuses: `6xx`"),
    (lambda: next(crawler.StreamResults(pb.StreamResultsRequest(hosts=["a b"]))), "hosts: "),
    (lambda: policy("", delay_ms=1), "hosts"),
    (lambda: policy(one.host), "delay_ms"),
    (lambda: policy("a b", delay_ms=1), "a b"),
    (lambda: policy(one.host, options={"dely": "1s"}), "did you mean `delay`?"),
    (lambda: policy(one.host, options={"delay": "soon"}), "is not a duration"),
    (lambda: crawler.ForceRecrawl(pb.ForceRecrawlRequest(urls=[one.url("/x")] * 10_001)), "send them in parts"),
]:
    refused(INVALID, call, words)
after = status()
same((after.state, after.done, after.pending), (pb.CRAWLER_STATE_RUNNING, state.done, 0))
for listener in (everything, missing_of_two, wrong):
    listener.stream.cancel()
