"""A crawl of the benchmark's web by Scrapy: follows every link, keeps nothing.

  crawl.py SEEDS CONCURRENCY PER_HOST DELAY_S ROBOTS FILTER

What is not needed is turned off, as Scrapy's manual advises for broad crawls and for speed. FILTER says who leaves out what was seen
before: `scrapy`, whose scheduler makes a request of every link and hashes it, or `set`, a set of strings in the spider, which is
no way to write one (it does not know two spellings of a URL for the same) but the cheapest.
"""

import sys

import scrapy
from scrapy.crawler import CrawlerProcess

seeds, concurrency, per_host, delay, robots, filtered_by = sys.argv[1:7]


class Web(scrapy.Spider):
    name = "web"

    async def start(self):
        with open(seeds) as lines:
            for request in self.requests(line.strip() for line in lines):
                yield request

    def parse(self, response):
        # Links are absolute here, so nothing has to be joined.
        return self.requests(response.xpath("//a/@href").getall())

    if filtered_by == "set":
        seen = set()

        def requests(self, urls):
            for url in urls:
                if url not in self.seen:
                    self.seen.add(url)
                    yield scrapy.Request(url, dont_filter=True)

    else:

        def requests(self, urls):
            for url in urls:
                yield scrapy.Request(url)


process = CrawlerProcess(
    {
        "LOG_LEVEL": "ERROR",
        "CONCURRENT_REQUESTS": int(concurrency),
        "CONCURRENT_REQUESTS_PER_DOMAIN": int(per_host),
        "DOWNLOAD_DELAY": float(delay),
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "ROBOTSTXT_OBEY": robots == "on",
        "AUTOTHROTTLE_ENABLED": False,
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "REDIRECT_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "REFERER_ENABLED": False,
        "COMPRESSION_ENABLED": False,
        "METAREFRESH_ENABLED": False,
        "HTTPPROXY_ENABLED": False,
        "LOGSTATS_INTERVAL": 0,
        "MEMUSAGE_ENABLED": False,
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
        "DOWNLOADER_MIDDLEWARES": {
            "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
            "scrapy.downloadermiddlewares.downloadtimeout.DownloadTimeoutMiddleware": None,
            "scrapy.downloadermiddlewares.stats.DownloaderStats": None,
        },
        "SPIDER_MIDDLEWARES": {
            "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
            "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
        },
        "EXTENSIONS": {"scrapy.extensions.corestats.CoreStats": None},
    }
)
process.crawl(Web)
process.start()
