//! The messages of OTLP that a trace needs, by their numbers in `opentelemetry/proto/trace/v1/trace.proto` and its neighbours.

use prost::{Message, Oneof};

/// What is sent to `/v1/traces`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportTraces {
    #[prost(message, repeated, tag = "1")]
    pub(super) resource_spans: Vec<ResourceSpans>,
}

/// Spans of one source.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_spans: Vec<ScopeSpans>,
}

/// Who tells.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Attributes,
}

/// Spans of one part of the source.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) spans: Vec<Span>,
}

/// Which part.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Scope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

/// Something that took time.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(super) name: String,
    #[prost(int32, tag = "6")]
    pub(super) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(super) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub(super) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Attributes,
    #[prost(message, optional, tag = "15")]
    pub(super) status: Option<Status>,
}

/// How it went.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Status {
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(int32, tag = "3")]
    pub(super) code: i32,
}

/// Names and values.
pub(super) type Attributes = Vec<Attribute>;

/// A name and a value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

/// A value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "AnyKind", tags = "1, 3")]
    pub(super) kind: Option<AnyKind>,
}

/// A value of one of the kinds that are needed here.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum AnyKind {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}

/// An attribute with a text.
pub(super) fn attribute(key: &str, text: &str) -> Attribute {
    Attribute { key: key.to_owned(), value: Some(AnyValue { kind: Some(AnyKind::Text(text.to_owned())) }) }
}

/// An attribute with a number.
pub(super) fn number(key: &str, number: i64) -> Attribute {
    Attribute { key: key.to_owned(), value: Some(AnyValue { kind: Some(AnyKind::Number(number)) }) }
}
