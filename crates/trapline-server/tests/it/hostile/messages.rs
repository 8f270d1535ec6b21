//! Messages that are wrong in one place, for every place there is: made from what the `.proto` files say.

use std::collections::BTreeMap;

use prost::Message;
use prost_types::field_descriptor_proto::Type;
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet, MessageOptions};
use trapline_server::proto::DESCRIPTORS;

pub(super) struct Method {
    pub(super) path: String,
    /// Whether callers send any number of messages.
    pub(super) hears_streams: bool,
    input: String,
}

/// A message with a value in one field.
pub(super) struct Wrong {
    pub(super) path: String,
    /// The names of the fields down to it.
    pub(super) place: Vec<String>,
    pub(super) message: Vec<u8>,
}

pub(super) struct Protos {
    pub(super) methods: Vec<Method>,
    messages: BTreeMap<String, DescriptorProto>,
}

impl Protos {
    pub(super) fn read() -> Self {
        let files = FileDescriptorSet::decode(DESCRIPTORS).unwrap();
        let (mut methods, mut messages) = (Vec::new(), BTreeMap::new());
        for file in files.file {
            let package = file.package().to_owned();
            for service in &file.service {
                methods.extend(service.method.iter().map(|method| Method {
                    path: format!("/{package}.{}/{}", service.name(), method.name()),
                    hears_streams: method.client_streaming(),
                    input: method.input_type().to_owned(),
                }));
            }
            collect(&format!(".{package}"), file.message_type, &mut messages);
        }
        Self { methods, messages }
    }

    /// A message for each field of a kind in what each method is called with, wherever it is. `value` is how it is written.
    pub(super) fn with_each(&self, kind: Type, value: &[u8]) -> Vec<Wrong> {
        let mut all = Vec::new();
        for method in &self.methods {
            for (place, message) in self.places(&method.input, kind, value) {
                all.push(Wrong { path: method.path.clone(), place, message });
            }
        }
        all
    }

    fn places(&self, message: &str, kind: Type, value: &[u8]) -> Vec<(Vec<String>, Vec<u8>)> {
        let mut places = Vec::new();
        let message = &self.messages[message];
        let is_entry = message.options.as_ref().is_some_and(MessageOptions::map_entry);
        for field in &message.field {
            // What is said of an entry of a map is said of the map, and of one of several of all of them.
            let name = match field.oneof_index {
                _ if is_entry => None,
                Some(place) if !field.proto3_optional() => {
                    Some(message.oneof_decl[usize::try_from(place).unwrap()].name().to_owned())
                }
                _ => Some(field.name().to_owned()),
            };
            let named = |below: Vec<String>| name.iter().cloned().chain(below).collect();
            if field.r#type() == kind {
                let wire = if kind == Type::Enum { 0 } else { 2 };
                places.push((named(Vec::new()), [&key(field, wire)[..], value].concat()));
            }
            if field.r#type() == Type::Message {
                for (place, inner) in self.places(field.type_name(), kind, value) {
                    let length = u8::try_from(inner.len()).unwrap();
                    assert!(length < 128, "it is one byte");
                    places.push((named(place), [&key(field, 2)[..], &[length], &inner].concat()));
                }
            }
        }
        places
    }
}

fn key(field: &FieldDescriptorProto, wire: u8) -> Vec<u8> {
    let number = u8::try_from(field.number()).unwrap();
    match number {
        ..16 => vec![number << 3 | wire],
        _ => vec![(number & 15) << 3 | wire | 128, number >> 4],
    }
}

fn collect(within: &str, found: Vec<DescriptorProto>, messages: &mut BTreeMap<String, DescriptorProto>) {
    for message in found {
        let name = format!("{within}.{}", message.name());
        collect(&name, message.nested_type.clone(), messages);
        messages.insert(name, message);
    }
}
