//! How much a message is made of, told from its bytes before room is made for it: an empty candidate is two bytes long on its way and takes
//! half a kilobyte of memory. What the parts mean is not known here.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet, MessageOptions, MethodDescriptorProto,
};

use crate::frontier_service::BATCH_MAX;
use crate::proto::DESCRIPTORS;

/// The messages of our services, as far as they are made of others.
static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
    let files = FileDescriptorSet::decode(DESCRIPTORS).expect("the build wrote it");
    Shapes::of(&files)
});

/// Why a request is not read any further.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// More of a part than are taken at once: the part's name, and how many those are.
    TooMany(&'static str, usize),
    /// No message at all.
    Garbled,
}

/// What is to be counted of a kind of request.
#[derive(Clone, Copy)]
pub(crate) struct Bulk(Option<usize>);

impl Bulk {
    /// Of the request of this name; None for what nobody calls a method with.
    pub(crate) fn of_request(name: &str) -> Option<Self> {
        SHAPES.requests.get(name).copied().map(Self)
    }

    /// Looks whether there is room for one.
    pub(crate) fn check(self, bytes: &[u8]) -> Result<(), Unfit> {
        let Some(shape) = self.0 else { return Ok(()) };
        let mut counts = vec![0; SHAPES.counted.len()];
        SHAPES.count(shape, bytes, &mut counts)
    }
}

/// A field whose values are messages.
struct Part {
    /// Which shape those have.
    shape: usize,
    /// Where they are counted, if there can be many.
    count: Option<usize>,
}

#[derive(Default)]
struct Shapes {
    /// By the numbers of fields.
    shapes: Vec<BTreeMap<u32, Part>>,
    /// The shapes of what methods are called with, where something in them is counted.
    requests: BTreeMap<String, Option<usize>>,
    /// The names of the fields that are counted, and how many there may be.
    counted: Vec<(String, usize)>,
}

impl Shapes {
    fn of(files: &FileDescriptorSet) -> Self {
        let mut messages = BTreeMap::new();
        for file in &files.file {
            collect(&format!(".{}", file.package()), &file.message_type, &mut messages);
        }
        let numbers: BTreeMap<&str, usize> = messages.keys().map(String::as_str).zip(0..).collect();
        let mut all = Self::default();
        for message in messages.values() {
            let mut shape = BTreeMap::new();
            for field in message.field.iter().filter(|field| field.r#type() == Type::Message) {
                let Some(kind) = messages.get(field.type_name()) else { continue };
                let count = most_of(field, kind).map(|most| {
                    all.counted.push((field.name().to_owned(), most));
                    all.counted.len() - 1
                });
                let number = u32::try_from(field.number()).expect("fields have numbers from 1 on");
                shape.insert(number, Part { shape: numbers[field.type_name()], count });
            }
            all.shapes.push(shape);
        }
        for service in files.file.iter().flat_map(|file| &file.service) {
            for name in service.method.iter().map(MethodDescriptorProto::input_type) {
                let shape = Some(numbers[name]).filter(|shape| all.has_bulk(*shape));
                all.requests.insert(name.trim_start_matches('.').to_owned(), shape);
            }
        }
        all
    }

    /// Whether something in a shape is counted. No message of ours has one of its own kind in it.
    fn has_bulk(&self, shape: usize) -> bool {
        self.shapes[shape].values().any(|part| part.count.is_some() || self.has_bulk(part.shape))
    }

    fn count(&'static self, shape: usize, mut bytes: &[u8], counts: &mut [usize]) -> Result<(), Unfit> {
        while !bytes.is_empty() {
            let (field, wire) = decode_key(&mut bytes).map_err(|_| Unfit::Garbled)?;
            let length = match wire {
                WireType::Varint => {
                    decode_varint(&mut bytes).map_err(|_| Unfit::Garbled)?;
                    0
                }
                WireType::SixtyFourBit => 8,
                WireType::ThirtyTwoBit => 4,
                WireType::LengthDelimited => {
                    let length = decode_varint(&mut bytes).map_err(|_| Unfit::Garbled)?;
                    usize::try_from(length).map_err(|_| Unfit::Garbled)?
                }
                // There are none in these messages, and something could hide behind them.
                WireType::StartGroup | WireType::EndGroup => return Err(Unfit::Garbled),
            };
            let (value, rest) = bytes.split_at_checked(length).ok_or(Unfit::Garbled)?;
            bytes = rest;
            let Some(part) = self.shapes[shape].get(&field).filter(|_| wire == WireType::LengthDelimited)
            else {
                continue;
            };
            if let Some(count) = part.count {
                counts[count] += 1;
                let (name, most) = &self.counted[count];
                if counts[count] > *most {
                    return Err(Unfit::TooMany(name, *most));
                }
            }
            self.count(part.shape, value, counts)?;
        }
        Ok(())
    }
}

/// All messages, also those inside others, by their names with a dot before them.
fn collect<'d>(
    within: &str,
    found: &'d [DescriptorProto],
    messages: &mut BTreeMap<String, &'d DescriptorProto>,
) {
    for message in found {
        let name = format!("{within}.{}", message.name());
        collect(&name, &message.nested_type, messages);
        messages.insert(name, message);
    }
}

/// What is made of plain values only takes some sixty bytes. No honest request of a usual size has so many: each is longer on its way
/// than a message of so many has room for.
const PLAIN_MAX: usize = 500_000;

/// How many values of a field may come at once, if there can be many, each of which takes far more room than its bytes. Empty entries of
/// maps are one entry.
fn most_of(field: &FieldDescriptorProto, kind: &DescriptorProto) -> Option<usize> {
    let is_map = kind.options.as_ref().is_some_and(MessageOptions::map_entry);
    let has_parts = kind.field.iter().any(|field| field.r#type() == Type::Message);
    let most = if has_parts { BATCH_MAX } else { PLAIN_MAX };
    (field.label() == Label::Repeated && !is_map).then_some(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{urlfrontier as pb, v1};

    fn admit(candidates: usize) -> v1::AdmitRequest {
        let candidates = vec![v1::Candidate::default(); candidates];
        v1::AdmitRequest { crawl: "c".to_owned(), candidates, now_ms: Some(1) }
    }

    #[test]
    fn parts_are_counted_wherever_they_are() {
        let check = |name: &str, message: &[u8], expected: Result<(), Unfit>| {
            let bulk = Bulk::of_request(name).unwrap();
            assert_eq!(bulk.check(message), expected, "{name}");
        };
        check("trapline.v1.AdmitRequest", &admit(BATCH_MAX).encode_to_vec(), Ok(()));
        let too_many = Err(Unfit::TooMany("candidates", BATCH_MAX));
        check("trapline.v1.AdmitRequest", &admit(BATCH_MAX + 1).encode_to_vec(), too_many);
        let links =
            |links| v1::Settlement { links: vec![v1::Candidate::default(); links], ..Default::default() };
        let settle = |settlements| v1::SettleRequest { settlements, ..Default::default() }.encode_to_vec();
        check("trapline.v1.SettleRequest", &settle(vec![links(60_000)]), Ok(()));
        let too_many = Err(Unfit::TooMany("links", BATCH_MAX));
        check("trapline.v1.SettleRequest", &settle(vec![links(60_000), links(60_000)]), too_many);
        let items = vec![pb::UrlInfo::default(); BATCH_MAX + 1];
        let batch = pb::DiscoveredBatch { items, ..Default::default() };
        check("urlfrontier.DiscoveredBatch", &batch.encode_to_vec(), Err(Unfit::TooMany("items", BATCH_MAX)));
        let notes = vec![v1::NoteWrite::default(); PLAIN_MAX + 1];
        let settlement = v1::Settlement { notes, ..Default::default() };
        let too_many = Err(Unfit::TooMany("notes", PLAIN_MAX));
        check("trapline.v1.SettleRequest", &settle(vec![settlement]), too_many);
        // Who asked for so many has room for them.
        assert!(Bulk::of_request("trapline.v1.ScanResponse").is_none());
    }

    #[test]
    fn what_is_no_message_is_told_from_one() {
        let bulk = Bulk::of_request("trapline.v1.AdmitRequest").unwrap();
        let check = |bytes: &[u8], expected| assert_eq!(bulk.check(bytes), expected);
        check(&[], Ok(()));
        // Fields that are not known, of every kind that there is.
        check(&[0x78, 0x01, 0x79, 1, 2, 3, 4, 5, 6, 7, 8, 0x7d, 1, 2, 3, 4, 0x7a, 1, 9], Ok(()));
        // A length beyond the end, one beyond all bounds, a number without an end, a group.
        check(&[0x12, 0x05, 0], Err(Unfit::Garbled));
        check(&[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], Err(Unfit::Garbled));
        check(&[0xff; 20], Err(Unfit::Garbled));
        check(&[0x7b, 0x7c], Err(Unfit::Garbled));
    }
}
