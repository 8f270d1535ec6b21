"""Takes traces as OpenTelemetry's own messages read them, and prints a line of JSON for each span.

Usage: otlp_receiver.py FOLDER REFUSALS. FOLDER has the package opentelemetry-proto; as many requests are refused first, as a
collector that is overloaded does. The first line is the port.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

sys.path.insert(0, sys.argv[1])
refusals = int(sys.argv[2])

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: E402
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


def attributes(pairs):
    kind = lambda value: getattr(value, value.WhichOneof("value"))
    return {pair.key: kind(pair.value) for pair in pairs}


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        global refusals
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if refusals > 0:
            refusals -= 1
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        request = ExportTraceServiceRequest.FromString(body)
        for source in request.resource_spans:
            for part in source.scope_spans:
                for span in part.spans:
                    told = {
                        "path": self.path,
                        "content_type": self.headers["Content-Type"],
                        "unknown_bytes": len(body) - len(request.SerializeToString()),
                        "resource": attributes(source.resource.attributes),
                        "scope": part.scope.name,
                        "trace": span.trace_id.hex(),
                        "span": span.span_id.hex(),
                        "parent": span.parent_span_id.hex(),
                        "name": span.name,
                        "kind": span.kind,
                        "start": span.start_time_unix_nano,
                        "end": span.end_time_unix_nano,
                        "attributes": attributes(span.attributes),
                        "status": span.status.code,
                    }
                    print(json.dumps(told), flush=True)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_port, flush=True)
server.serve_forever()
