// A crawl of the benchmark's web by colly: follows every link, keeps nothing.
//
//	colly SEEDS CONCURRENCY DELAY_MS ROBOTS
package main

import (
	"bufio"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/gocolly/colly/v2"
)

func main() {
	seeds, err := os.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	concurrency, _ := strconv.Atoi(os.Args[2])
	delay, _ := strconv.Atoi(os.Args[3])
	crawl := colly.NewCollector(colly.Async())
	crawl.IgnoreRobotsTxt = os.Args[4] != "on"
	crawl.DetectCharset = false
	crawl.DisableCookies()
	crawl.WithTransport(&http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		MaxIdleConns:        0,
		MaxIdleConnsPerHost: 16,
		DisableCompression:  true,
	})
	// One rule for all hosts together: a rule for each would be a thousand patterns to try for each request.
	rule := &colly.LimitRule{DomainGlob: "*", Parallelism: concurrency, Delay: time.Duration(delay) * time.Millisecond}
	if err := crawl.Limit(rule); err != nil {
		log.Fatal(err)
	}
	crawl.OnHTML("a[href]", func(link *colly.HTMLElement) {
		_ = link.Request.Visit(link.Attr("href"))
	})
	for lines := bufio.NewScanner(seeds); lines.Scan(); {
		// Others may have linked to it already, which is no error.
		_ = crawl.Visit(lines.Text())
	}
	crawl.Wait()
}
