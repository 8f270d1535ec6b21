//! How messages are written and read. A request that is larger than it looks is refused before room is made for it, and one that cannot be
//! read is its sender's mistake, in a sentence that says where.

use std::marker::PhantomData;

use prost::bytes::Buf;
use prost::{Message, Name};
use tonic::Status;
use tonic::codec::{Codec as Codecs, DecodeBuf, Decoder, EncodeBuf, Encoder};

use crate::bulk::{Bulk, Unfit};

/// Writes messages of one kind and reads those of another.
pub(crate) struct Codec<W, R>(PhantomData<(W, R)>);

impl<W, R> Default for Codec<W, R> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<W, R> Codecs for Codec<W, R>
where
    W: Message + Send + 'static,
    R: Message + Name + Default + Send + 'static,
{
    type Encode = W;
    type Decode = R;
    type Encoder = Writer<W>;
    type Decoder = Reader<R>;

    fn encoder(&mut self) -> Writer<W> {
        Writer(PhantomData)
    }

    fn decoder(&mut self) -> Reader<R> {
        Reader { bulk: Bulk::of_request(&R::full_name()), message: PhantomData }
    }
}

/// Writes messages.
pub(crate) struct Writer<W>(PhantomData<W>);

impl<W: Message> Encoder for Writer<W> {
    type Item = W;
    type Error = Status;

    fn encode(&mut self, message: W, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        message.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

/// Reads messages.
pub(crate) struct Reader<R> {
    /// Of a request.
    bulk: Option<Bulk>,
    message: PhantomData<R>,
}

impl<R: Message + Name + Default> Decoder for Reader<R> {
    type Item = R;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<R>, Status> {
        let bytes = buffer.copy_to_bytes(buffer.remaining());
        if let Some(bulk) = self.bulk {
            bulk.check(&bytes).map_err(|unfit| unfit_to_read::<R>(&unfit))?;
        }
        match R::decode(bytes) {
            Ok(message) => Ok(Some(message)),
            Err(error) if self.bulk.is_some() => {
                Err(Status::invalid_argument(format!("{} cannot be read: {error}", R::NAME)))
            }
            Err(error) => Err(Status::internal(error.to_string())),
        }
    }
}

fn unfit_to_read<R: Name>(unfit: &Unfit) -> Status {
    Status::invalid_argument(match unfit {
        Unfit::TooMany(part, most) => format!(
            "{} has more than {most} {part}, and so many are taken at once at most; nothing was done: send it in parts",
            R::NAME
        ),
        Unfit::Garbled => format!("{} cannot be read: its bytes are no message of protobuf", R::NAME),
    })
}
